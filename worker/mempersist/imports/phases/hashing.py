"""First turn of an import: the SHA-256 of the upload, and whether the same bytes were imported before."""

from __future__ import annotations

from dataclasses import replace

from mempersist.imports.bodies import object_sha256
from mempersist.imports.duplicates import earlier_import
from mempersist.imports.runs import Run, Step, keep_lease
from mempersist.jobs import Job
from mempersist.limits import MIB
from mempersist.ports import Ports

_RENEW_EVERY_BYTES = 256 * MIB


async def step(ports: Ports, job: Job, run: Run) -> Step:
    sha256 = run.sha256 or await _digest(ports, job, run)
    if not run.state.force:
        duplicate_of = await earlier_import(ports, run.account, run.import_id, sha256)
        if duplicate_of is not None:
            return Step(replace(run.state, phase="finish", duplicate_of=duplicate_of), sha256=sha256)
    return Step(replace(run.state, phase="survey"), sha256=sha256)


async def _digest(ports: Ports, job: Job, run: Run) -> str:
    async def keep(offset: int) -> None:
        if offset and offset % _RENEW_EVERY_BYTES == 0:
            await keep_lease(ports, job)

    return await object_sha256(ports.objects, run.object_key, run.size_bytes, keep)
