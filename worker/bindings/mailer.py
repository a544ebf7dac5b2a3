"""The send_email binding as the mailer."""

from __future__ import annotations

from typing import Any

from pyodide.ffi import JsException

from bindings.ffi import js_object
from mempersist.ports import Mail, MailUnavailable
from mempersist.rules.mail import check_mail


class WorkerMailer:
    """:class:`mempersist.ports.Mailer` over a send_email binding. A message is tried once: twice could be two mails.

    :param sender: the address it comes from, on a domain that Cloudflare may send for.
    """

    def __init__(self, email: Any, sender: str) -> None:
        self._email = email
        self._sender = sender

    async def send(self, mail: Mail) -> None:
        check_mail(mail)
        fields = {"from": self._sender, "to": mail.to, "subject": mail.subject, "text": mail.text}
        if mail.html is not None:
            fields["html"] = mail.html
        try:
            await self._email.send(js_object(fields))
        except JsException:
            raise MailUnavailable from None
