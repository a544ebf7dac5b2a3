"""Messages that a queue gave up on: written down, their jobs parked with the reason, and somebody told."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mempersist import logs, timestamps
from mempersist.errors import Code
from mempersist.jobs import Decision, Delivery
from mempersist.limits import MAX_DELIVERIES
from mempersist.ports import Mail, MailUnavailable, Ports, Statement

_MAX_BODY_CHARS = 1000
_REASON = "its queue message was delivered too often without being handled; see the log, then replay it"


async def record(ports: Ports, deliveries: Sequence[Delivery], alert_to: str | None = None) -> list[Decision]:
    """Keep each message in the catalog, and park the job it names if that was tried as often as a job is. Other jobs
    were never the trouble, as when the catalog was out of reach: the sweeper sends them again.

    The log says it first, and one mail goes to ``alert_to`` where mail is set up. Safe to do twice.

    :raises CatalogError: when nothing was recorded; the messages shall come again.
    """
    now = timestamps.from_ms(ports.clock.now_ms())
    logs.error("dead_letters", messages=[delivery.id for delivery in deliveries])
    statements: list[Statement] = []
    for delivery in deliveries:
        job_id = delivery.body.get("job_id")
        named = job_id if isinstance(job_id, str) else None
        statements += [
            Statement(
                "INSERT INTO dead_letters (message_id, job_id, body, recorded_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (message_id) DO NOTHING",
                (delivery.id, named, json.dumps(dict(delivery.body))[:_MAX_BODY_CHARS], now),
            ),
            Statement(
                "UPDATE jobs SET status = 'failed', error_code = ?1, error_message = ?2, lease_owner = NULL,"
                " lease_expires_at = NULL, updated_at = ?3 WHERE job_id = ?4 AND attempts >= ?5 AND"
                " (status = 'pending' OR (status = 'running' AND lease_expires_at <= ?3)) RETURNING job_id, kind",
                (Code.RETRYABLE_INFRASTRUCTURE.value, _REASON, now, named, MAX_DELIVERIES),
            ),
        ]
    results = await ports.catalog.batch(statements)
    parked = [row for result in results[1::2] for row in result.rows]
    if parked:
        logs.error("jobs_parked", jobs=[row["job_id"] for row in parked])
    if parked and ports.mailer is not None and alert_to is not None:
        await _tell(ports, alert_to, [f"{row['kind']} job {row['job_id']}" for row in parked])
    return [Decision(delivery.id, "ack") for delivery in deliveries]


async def _tell(ports: Ports, alert_to: str, jobs: Sequence[str]) -> None:
    text = "These jobs were given up by their queue and wait to be replayed:\n\n" + "\n".join(jobs)
    assert ports.mailer is not None  # noqa: S101
    try:
        await ports.mailer.send(Mail(alert_to, f"MemPersist: {len(jobs)} jobs are parked", text))
    except (MailUnavailable, ValueError) as error:
        logs.error("alert_not_sent", defect=type(error).__name__)
