"""Turns that find out what an upload holds, one archive a turn."""

from __future__ import annotations

from dataclasses import replace

from mempersist.errors import Code, MempersistError
from mempersist.imports import archives
from mempersist.imports.counts import Counts, tally
from mempersist.imports.layout import ExportLayout
from mempersist.imports.problems import ItemError
from mempersist.imports.records import FindingRow
from mempersist.imports.runs import Run, Step
from mempersist.imports.state import Failure, State
from mempersist.jobs import Job
from mempersist.ports import Ports


async def step(ports: Ports, job: Job, run: Run) -> Step:
    archive = run.state.archive
    try:
        layout = await archives.survey(ports, job, run, archive)
    except MempersistError as error:
        if error.code is not Code.PERMANENT_PARSER:
            raise
        return _unreadable(run, error.details["reason"], error.message)
    except ItemError as error:
        return _unreadable(run, error.code, error.message)
    return Step(
        _next(
            replace(
                run.state,
                archives=1 + len(layout.nested) if archive == 0 else run.state.archives,
                bytes_total=run.state.bytes_total + _bytes(run, layout),
            )
        ),
        [
            FindingRow(_position(archive, finding.position), finding.severity, finding.code, finding.message)
            for finding in layout.findings
        ],
        Counts(files=tally("skipped", sum(layout.skipped.values()))),
    )


def _unreadable(run: Run, code: str, message: str) -> Step:
    """The upload itself cannot be read, which ends the import, or one archive inside it, which does not."""
    if run.state.archive == 0:
        return Step(replace(run.state, phase="finish", failure=Failure(code, message)))
    finding = FindingRow(_position(run.state.archive, "archive"), "failed", code, message)
    return Step(_next(run.state), [finding], Counts(files=tally("failed")))


def _next(state: State) -> State:
    if state.archive + 1 < state.archives:
        return replace(state, archive=state.archive + 1)
    return replace(state, phase="files", archive=0, file=0)


def _position(archive: int, position: str) -> str:
    return position if archive == 0 else f"{archive}/{position}"


def _bytes(run: Run, layout: ExportLayout) -> int:
    sizes = (file.member.size if file.member else run.size_bytes for file in layout.conversations)
    return sum(sizes) + layout.asset_bytes
