"""The mailer in memory: what was sent is there to be read."""

from __future__ import annotations

from mempersist.ports import Mail
from mempersist.rules.mail import check_mail


class MemoryMailer:
    def __init__(self) -> None:
        self.sent: list[Mail] = []

    def close(self) -> None:
        """Nothing to close; here so that tests treat every adapter alike."""

    async def send(self, mail: Mail) -> None:
        check_mail(mail)
        self.sent.append(mail)
