"""The contract of the mailer port."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mempersist.ports import Mail, Mailer
from mempersist_ops.stores.embedded.mailer import OutboxMailer, read_outbox
from mempersist_ops.stores.memory.mailer import MemoryMailer
from mempersist_ops.stores.memory.system import ManualClock
from tests.rigs.adapters import adapters
from tests.rigs.worker.ports import RigMailer
from tests.rigs.worker.process import running

Sent = Callable[[], list[Mail]]
MAIL = Mail("ada@example.org", "Hello", "A text with an umlaut: ü.\n", None)


def _memory(_: Path) -> tuple[Mailer, Sent]:
    mailer = MemoryMailer()
    return mailer, lambda: list(mailer.sent)


def _embedded(directory: Path) -> tuple[Mailer, Sent]:
    clock = ManualClock()

    class Ticking:
        def now_ms(self) -> int:
            clock.advance(1)
            return clock.now_ms()

    outbox = directory / "outbox"
    return OutboxMailer(outbox, Ticking()), lambda: [found.mail for found in reversed(read_outbox(outbox))]


def _worker(_: Path) -> tuple[Mailer, Sent]:
    rig = running()
    rig.steer("world")

    def sent() -> list[Mail]:
        return [Mail(mail["to"], mail["subject"], mail["text"], mail.get("html")) for mail in rig.steer("mail")]

    return RigMailer(rig, "memory@example.com"), sent


Open = Callable[[Path], tuple[Mailer, Sent]]
MAILERS: dict[str, Open] = {"memory": _memory, "embedded": _embedded, "worker": _worker}


@pytest.fixture(params=adapters(MAILERS))
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Mailer, Sent]:
    return MAILERS[request.param](tmp_path)


async def test_what_is_sent_arrives_whole_and_in_order(opened: tuple[Mailer, Sent]) -> None:
    mailer, sent = opened
    second = replace(MAIL, subject="Again", html="<p>ü</p>")
    await mailer.send(MAIL)
    await mailer.send(second)
    assert sent() == [MAIL, second]


@pytest.mark.parametrize(
    "changed",
    [
        {"to": "ada"},
        {"to": "ada@example.org, eve@example.org"},
        {"to": "ada@example.org\r\nBcc: eve@example.org"},
        {"subject": "Hello\r\nBcc: eve@example.org"},
        {"subject": ""},
        {"text": ""},
    ],
)
async def test_what_no_mail_may_be_is_refused_and_not_sent(
    opened: tuple[Mailer, Sent], changed: dict[str, str]
) -> None:
    mailer, sent = opened
    with pytest.raises(ValueError, match=next(iter(changed))):
        await mailer.send(replace(MAIL, **changed))  # type: ignore[arg-type]
    assert sent() == []


async def test_the_outbox_is_private_and_keeps_the_newest(tmp_path: Path) -> None:
    mailer, sent = _embedded(tmp_path)
    for number in range(55):
        await mailer.send(replace(MAIL, subject=str(number)))
    assert [mail.subject for mail in sent()] == [str(number) for number in range(5, 55)]
    assert (tmp_path / "outbox").stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "outbox").iterdir())
