"""`mempersist outbox`: the mails that the local server would have sent."""

from __future__ import annotations

import os
from pathlib import Path

import click

from mempersist_ops.cli.options import data_dir_option
from mempersist_ops.host import datadir
from mempersist_ops.stores.embedded.mailer import read_outbox


@click.command()
@data_dir_option
@click.argument("mail_id", required=False)
def outbox(data_dir: Path | None, mail_id: str | None) -> None:
    """Show the mails that the local server would have sent.

    Without MAIL_ID a list, the newest first; with it, that mail. "latest" is the newest.
    """
    directory = datadir.existing(datadir.location(data_dir, os.environ))
    mails = read_outbox(directory.outbox)
    if mail_id is None:
        for found in mails:
            click.echo(f"{found.mail_id}  {found.sent_at}  {found.mail.to}  {found.mail.subject}")
        return
    for found in mails:
        if mail_id in {"latest", found.mail_id}:
            click.echo(f"To: {found.mail.to}\nSubject: {found.mail.subject}\n\n{found.mail.text}")
            return
    raise click.UsageError("there is no such mail in the outbox; `mempersist outbox` lists them")
