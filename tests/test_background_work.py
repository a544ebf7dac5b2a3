"""The work behind the doors goes on: beside other programs, after a defect, after a dead program."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mempersist.archive.model import OWNER
from mempersist.background import deliver
from mempersist.imports import uploads
from mempersist.imports.status import import_status
from mempersist_ops.host import background, datadir
from mempersist_ops.host.datadir import DataDirectory
from mempersist_ops.host.importing import import_file
from mempersist_ops.host.runtime import Host, opened

EXPORT = json.dumps(
    [{"id": "a", "title": "A", "mapping": {"n": {"id": "n", "message": {"content": {"parts": ["walrus"]}}}}}]
).encode()


async def upload(host: Host) -> str:
    accepted = await uploads.direct(host.ports, OWNER, filename="a.json", body=EXPORT, size=len(EXPORT))
    return accepted.import_id


def in_directory(directory: DataDirectory, work: Callable[[Host], Any]) -> Any:
    async def run() -> Any:
        async with opened(directory) as host:
            return await work(host)

    return asyncio.run(run())


def wait_for(directory: DataDirectory, import_id: str) -> str:
    """The status of the import once it has ended."""

    async def status(host: Host) -> str:
        deadline = time.monotonic() + 30
        while True:
            found = await import_status(host.ports, OWNER, import_id)
            if found.ended:
                return found.status
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)

    return str(in_directory(directory, status))


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    return datadir.create(tmp_path / "data")


def test_what_one_program_accepts_another_does(directory: DataDirectory) -> None:
    work = background.BackgroundWork(directory)
    work.start()
    try:
        assert wait_for(directory, in_directory(directory, upload)) == "complete"
    finally:
        work.stop()


def test_after_a_defect_the_work_goes_on_and_the_log_has_the_place_and_not_the_words(
    directory: DataDirectory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[int] = []

    async def once_defective(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise KeyError("words of a memory")
        return await deliver(*arguments)

    monkeypatch.setattr(background, "deliver", once_defective)
    monkeypatch.setattr(background, "_TROUBLE_SECONDS", 0.01)
    monkeypatch.setattr(background, "LEASE_SECONDS", 1)
    work = background.BackgroundWork(directory)
    with caplog.at_level(logging.INFO, "mempersist"):
        work.start()
        try:
            assert wait_for(directory, in_directory(directory, upload)) == "complete"
        finally:
            work.stop()
    (line,) = [json.loads(message) for message in caplog.messages if "background_trouble" in message]
    assert line["defect"].startswith("KeyError at once_defective:")
    assert "words" not in caplog.text


def test_the_first_program_to_come_takes_over_the_leases_of_a_dead_one(directory: DataDirectory) -> None:
    async def dies_in_a_turn(host: Host) -> str:
        import_id = await upload(host)
        await host.queue.receive("import", limit=1, lease_seconds=3600)
        await host.ports.catalog.query(
            "UPDATE jobs SET status = 'running', lease_owner = 'dead', lease_expires_at = '2999-01-01T00:00:00.000Z'"
        )
        return import_id

    import_id = in_directory(directory, dies_in_a_turn)

    async def done(host: Host) -> str:
        async def ended() -> bool:
            return (await import_status(host.ports, OWNER, import_id)).ended

        await asyncio.wait_for(background.work_until(host, ended), 20)
        return (await import_status(host.ports, OWNER, import_id)).status

    assert in_directory(directory, done) == "complete"


def test_running_an_interrupted_import_again_goes_on_with_it(directory: DataDirectory, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(EXPORT)
    begun = in_directory(directory, upload)

    async def again(host: Host) -> list[str]:
        first = await import_file(host, tmp_path / "a.json", None, force=False, progress=lambda *_: None)
        other = await import_file(host, tmp_path / "a.json", "work", force=True, progress=lambda *_: None)
        return [first.import_id, first.status, other.import_id]

    import_id, status, forced = in_directory(directory, again)
    assert (import_id, status) == (begun, "complete")
    assert forced != begun


def test_a_program_that_comes_second_leaves_the_leases_of_the_first_alone(directory: DataDirectory) -> None:
    async def first(host: Host) -> str:
        await upload(host)
        await host.ports.catalog.query(
            "UPDATE jobs SET status = 'running', lease_owner = 'first', lease_expires_at = '2999-01-01T00:00:00.000Z'"
        )
        async with opened(directory) as second:
            rows = await second.ports.catalog.query("SELECT lease_owner, lease_expires_at FROM jobs")
        return str(rows[0]["lease_expires_at"])

    assert in_directory(directory, first) == "2999-01-01T00:00:00.000Z"
