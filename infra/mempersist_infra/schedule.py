"""The clock that sweeps up what was left over."""

from __future__ import annotations

from typing import Final

import pulumi
import pulumi_cloudflare as cloudflare

from mempersist_infra.context import Context

EACH_MINUTE: Final = "* * * * *"


def schedule(context: Context, worker: pulumi.Resource, deployed: pulumi.Resource) -> cloudflare.WorkersCronTrigger:
    """The Worker's cron trigger. Its deletion sends nothing: it ends with the Worker."""
    return cloudflare.WorkersCronTrigger(
        "sweep",
        account_id=context.account,
        script_name=context.names.worker,
        schedules=[{"cron": EACH_MINUTE}],
        opts=context.options(after=(worker, deployed)),
    )
