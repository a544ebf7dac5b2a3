"""The local host's mailer: an outbox directory, so that signing in can be tried without a mail server.

One file a mail, for the directory's owner alone; the oldest are removed once there are more than fifty.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from mempersist import timestamps
from mempersist.ports import Clock, Mail, MailUnavailable
from mempersist.rules.mail import check_mail

KEPT: Final = 50
_ENDING: Final = ".mail.json"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A mail in the outbox. ``mail_id`` is its file's name without the ending; ``sent_at`` is ISO 8601 UTC."""

    mail_id: str
    sent_at: str
    mail: Mail


class OutboxMailer:
    """:class:`mempersist.ports.Mailer` over the directory ``outbox``, which is made when the first mail comes."""

    def __init__(self, outbox: Path, clock: Clock) -> None:
        self._outbox = outbox
        self._clock = clock

    async def send(self, mail: Mail) -> None:
        check_mail(mail)
        try:
            await asyncio.to_thread(self._write, mail)
        except OSError as error:
            raise MailUnavailable from error

    def _write(self, mail: Mail) -> None:
        self._outbox.mkdir(mode=0o700, exist_ok=True)
        now = self._clock.now_ms()
        path = self._outbox / f"{now:015d}-{secrets.token_hex(4)}{_ENDING}"
        temporary = path.with_name(f".{path.name}")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"sentAt": timestamps.from_ms(now), **asdict(mail)}, file)
        temporary.replace(path)
        for old in _files(self._outbox)[:-KEPT]:
            old.unlink(missing_ok=True)


def read_outbox(outbox: Path) -> tuple[Outgoing, ...]:
    """The mails, the newest first. :raises ValueError: for a file that no mailer wrote."""
    found = []
    for path in reversed(_files(outbox)):
        fields = json.loads(path.read_text(encoding="utf-8"))
        mail = Mail(fields["to"], fields["subject"], fields["text"], fields["html"])
        found.append(Outgoing(path.name.removesuffix(_ENDING), fields["sentAt"], mail))
    return tuple(found)


def _files(outbox: Path) -> list[Path]:
    return sorted(path for path in outbox.glob(f"*{_ENDING}") if not path.name.startswith("."))
