"""The import as a chain of bounded turns.

Phases: ``hash`` the upload and look for an earlier import of the same bytes; ``survey`` what it holds; read its
conversation ``files``; store its ``assets``; ``finish`` with the receipt. A turn does a bounded piece of one phase and
records it with the next checkpoint in one catalog batch; killed anywhere, it is simply done again, and everything it
wrote before is found by its content.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from mempersist import jobs
from mempersist.errors import Code, MempersistError
from mempersist.imports import runs, staging
from mempersist.imports.archives import MoreToStage
from mempersist.imports.phases import assets, finishing, hashing, reading, surveying
from mempersist.imports.runs import LeaseLost, Run, Step
from mempersist.imports.staging import PiecesLost
from mempersist.imports.state import Phase
from mempersist.jobs import CONTINUE, DONE, Job, Outcome
from mempersist.ports import CatalogError, ObjectNotFound, Ports, QueueUnavailable, StorageError

_STEPS: dict[Phase, Callable[[Ports, Job, Run], Awaitable[Step | Outcome]]] = {
    "hash": hashing.step,
    "survey": surveying.step,
    "files": reading.step,
    "assets": assets.step,
    "finish": finishing.step,
}


async def run_import_jobs(ports: Ports, claimed: Sequence[Job]) -> list[Outcome]:
    """One turn of each job, one after the other; trouble with one is not the others'."""
    outcomes = []
    for job in claimed:
        try:
            outcomes.append(await _turn(ports, job))
        except MempersistError as error:
            outcomes.append(Outcome("failed", error.code, error.message))
        except (CatalogError, StorageError, ObjectNotFound, QueueUnavailable) as error:
            outcomes.append(Outcome("failed", Code.RETRYABLE_INFRASTRUCTURE, type(error).__name__))
    return outcomes


async def _turn(ports: Ports, job: Job) -> Outcome:
    run = await runs.load(ports, job.account, job.subject_id)
    if run is None:
        await ports.catalog.batch([jobs.finished(job)])
        return DONE
    try:
        done = await _STEPS[run.state.phase](ports, job, run)
    except LeaseLost:
        return CONTINUE
    except MoreToStage:
        done = Step(run.state)
    except PiecesLost as lost:
        await staging.drop(ports.objects, lost.prefix)
        done = Step(run.state)
    if isinstance(done, Outcome):
        return done
    await ports.catalog.batch(runs.settle(run, job, done, runs.now_of(ports)))
    return CONTINUE
