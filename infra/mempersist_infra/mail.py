"""The domain that the service's mail is sent from. The sending itself is a binding of the Worker."""

from __future__ import annotations

import pulumi_cloudflare as cloudflare

from mempersist_infra.context import Component, Context


class MailDomain(Component):
    """Nothing, unless the settings name the zone: a domain that is set up already is left alone."""

    def __init__(self, context: Context) -> None:
        super().__init__("MailDomain", context)
        mail = context.settings.mail
        if mail is not None and mail.zone_id is not None:
            cloudflare.EmailSendingSubdomain(
                "mail-domain",
                zone_id=mail.zone_id,
                name=mail.sender.partition("@")[2].lower(),
                opts=context.within(self).options(),
            )
