"""The file system store: keys that a person can read, and nothing half-written, whoever dies."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from mempersist.ports import ObjectNotFound, StorageError
from mempersist_ops.stores.embedded.objects import FileObjectStore
from mempersist_ops.stores.embedded.paths import path_of


def files_below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "key",
    [
        "canonical/format.json",
        "canonical/conversations/3f2a-11/head/0000000001.json",
        "canonical/conversations/3f2a-11/segments/abc123.jsonl",
        "raw/imports/7c1e/source/conversations-000.json",
    ],
)
def test_the_archives_own_keys_are_their_paths(key: str) -> None:
    assert path_of(key) == key


def test_no_part_of_a_path_is_special_or_too_long_for_a_file_system() -> None:
    for key in ("..", "../../etc/passwd", "/etc/passwd", "a/./b", "x" * 1024, "é" * 512, "." * 300, "a." * 400):
        for part in path_of(key).split("/"):
            assert part not in {"", ".", ".."}
            assert len(part.encode()) <= 255


def test_keys_that_differ_in_case_have_paths_that_differ_without_it() -> None:
    assert path_of("Ab").lower() != path_of("aB").lower()


async def test_another_process_sees_a_put_that_returned(tmp_path: Path) -> None:
    await FileObjectStore(tmp_path).put("a/k", b"x")
    assert await FileObjectStore(tmp_path).get("a/k") == b"x"


async def test_an_upload_survives_a_restart(tmp_path: Path) -> None:
    first = FileObjectStore(tmp_path)
    upload_id = await first.create_multipart("k")
    part = await first.put_part("k", upload_id, 1, b"x")
    await FileObjectStore(tmp_path).complete_multipart("k", upload_id, [part])
    assert await FileObjectStore(tmp_path).get("k") == b"x"


async def test_leftovers_of_a_dead_writer_are_never_listed_and_go_after_an_hour(tmp_path: Path) -> None:
    store = FileObjectStore(tmp_path)
    await store.put("k", b"x")
    fresh, old = tmp_path / "tmp" / "fresh", tmp_path / "tmp" / "old"
    for leftover in (fresh, old):
        leftover.write_bytes(b"half")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    reopened = FileObjectStore(tmp_path)
    assert [info.key for info in (await reopened.list("")).objects] == ["k"]
    assert (fresh.exists(), old.exists()) == (True, False)


async def test_puts_and_deletions_in_the_same_folder_do_not_trip_over_each_other(tmp_path: Path) -> None:
    store, other = FileObjectStore(tmp_path), FileObjectStore(tmp_path)

    async def churn(which: FileObjectStore, name: str) -> None:
        for _ in range(60):
            await which.put(f"a/b/{name}", b"x")
            await which.delete([f"a/b/{name}"])
        await which.put(f"a/b/{name}", b"last")

    await asyncio.gather(churn(store, "one"), churn(store, "two"), churn(other, "three"))
    assert [info.key for info in (await store.list("")).objects] == ["a/b/one", "a/b/three", "a/b/two"]


async def test_a_finished_upload_leaves_no_parts_behind(tmp_path: Path) -> None:
    store = FileObjectStore(tmp_path)
    upload_id = await store.create_multipart("k.bin")
    part = await store.put_part("k.bin", upload_id, 1, b"x")
    await store.complete_multipart("k.bin", upload_id, [part])
    assert files_below(tmp_path) == {"objects/k.bin"}


async def test_a_directory_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError):
        FileObjectStore(tmp_path / "file")


RACE = """
    import asyncio, sys
    from pathlib import Path
    from mempersist.ports import PreconditionFailed
    from mempersist_ops.stores.embedded.objects import FileObjectStore

    async def main():
        store, won = FileObjectStore(Path(sys.argv[1])), []
        sys.stdin.readline()
        for number in range(100):
            try:
                await store.put(f"race/{number}.json", sys.argv[2].encode(), if_absent=True)
                won.append(number)
            except PreconditionFailed:
                pass
        print(*won)

    asyncio.run(main())
"""
WRITER = """
    import asyncio, itertools, sys
    from pathlib import Path
    from mempersist_ops.stores.embedded.objects import FileObjectStore

    async def main():
        store = FileObjectStore(Path(sys.argv[1]))
        for number in itertools.count():
            await store.put(f"f{number % 7}/{number}.bin", number.to_bytes(4, "big") * 50_000)
            print(number, flush=True)

    asyncio.run(main())
"""


def python(script: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


async def test_of_two_processes_exactly_one_creates_each_object(tmp_path: Path) -> None:
    FileObjectStore(tmp_path)
    racers = {name: python(RACE, str(tmp_path), name) for name in ("one", "two")}
    for racer in racers.values():
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = {name: set(map(int, racer.communicate()[0].split())) for name, racer in racers.items()}
    assert won["one"].isdisjoint(won["two"])
    assert won["one"] | won["two"] == set(range(100))
    store = FileObjectStore(tmp_path)
    for name, numbers in won.items():
        for number in numbers:
            assert await store.get(f"race/{number}.json") == name.encode()


async def test_a_killed_writer_leaves_whole_objects_only_and_all_that_it_acknowledged(tmp_path: Path) -> None:
    writer = python(WRITER, str(tmp_path))
    assert writer.stdout is not None
    acknowledged = [int(writer.stdout.readline()) for _ in range(12)]
    writer.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in writer.communicate()[0].split()]
    store = FileObjectStore(tmp_path)
    listed = [info.key for info in (await store.list("")).objects]
    for key in listed:
        number = int(key.split("/")[1].removesuffix(".bin"))
        assert await store.get(key) == number.to_bytes(4, "big") * 50_000
    assert {f"f{number % 7}/{number}.bin" for number in acknowledged} <= set(listed)
    with pytest.raises(ObjectNotFound):
        await store.get("f0/999999.bin")
