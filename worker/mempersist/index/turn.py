"""Index turns: bring the chunks, full text and vectors of conversations to their current heads.

The rows of a conversation's chunks are exchanged in one batch. A vector is deleted before its row is forgotten and
written before its row says so, so a crash leaves work to repeat and never a vector that nobody knows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from mempersist import canonical, jobs, timestamps
from mempersist.archive.read import LoadedConversation, load_current
from mempersist.catalog import bulk
from mempersist.errors import Code, MempersistError
from mempersist.index import terms
from mempersist.index.chunking import Chunk, chunk_conversation
from mempersist.index.generation import Generation, generation_of
from mempersist.jobs import DONE, Job, Outcome
from mempersist.limits import MAX_TURN_BYTES, VECTOR_MAX_DELETE, VECTOR_MAX_UPSERT
from mempersist.ports import CatalogError, IndexUnavailable, Ports, Row, SqlValue, Statement, VectorRecord
from mempersist.text import utf8_safe

_EMBED_TEXTS = 128
_CHUNK = (
    "chunk_id",
    "vector_id",
    "account_id",
    "conversation_id",
    "generation",
    "branch_key",
    "ordinal",
    "title",
    "body",
    "grams",
    "token_estimate",
    "created_at",
    "sources_json",
)


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a conversation's rows differ from what they shall be. ``loaded`` is None when all of them shall go."""

    job: Job
    loaded: LoadedConversation | None
    new: tuple[Chunk, ...]
    moved: tuple[Chunk, ...]
    gone: tuple[tuple[str, str], ...]
    count: int
    size: int


async def run_index_jobs(ports: Ports, claimed: Sequence[Job]) -> list[Outcome]:
    """Index the conversations of ``claimed``; those that fail do so alone.

    Work is done in groups of bounded size, each with one batch of rows and shared embedding calls.
    """
    outcomes: dict[str, Outcome] = {}
    group: list[_Plan] = []
    for job in claimed:
        try:
            plan = await _plan(ports, job)
        except MempersistError as error:
            outcomes[job.job_id] = Outcome("failed", error.code, error.message)
            continue
        if group and sum(item.size for item in group) + plan.size > MAX_TURN_BYTES:
            outcomes.update(await _apply_all(ports, group))
            group = []
        group.append(plan)
    outcomes.update(await _apply_all(ports, group))
    return [outcomes[job.job_id] for job in claimed]


async def _plan(ports: Ports, job: Job) -> _Plan:
    generation = generation_of(ports).id
    loaded = await load_current(ports, job.account, job.subject_id)
    rows = await ports.catalog.query(
        "SELECT chunk_id, vector_id, ordinal, title, sources_json FROM chunks"
        " WHERE account_id = ? AND conversation_id = ? AND generation = ?",
        (job.account, job.subject_id, generation),
    )
    stored = {row["chunk_id"]: row for row in rows}
    chunks = chunk_conversation(job.subject_id, generation, loaded.nodes, loaded.active) if loaded else ()
    wanted = {chunk.id for chunk in chunks}
    return _Plan(
        job,
        loaded,
        new=tuple(chunk for chunk in chunks if chunk.id not in stored),
        moved=tuple(
            chunk for chunk in chunks if loaded and chunk.id in stored and _moved(chunk, loaded, stored[chunk.id])
        ),
        gone=tuple((row["chunk_id"], row["vector_id"]) for row in rows if row["chunk_id"] not in wanted),
        count=len(chunks),
        size=sum(len(chunk.body) for chunk in chunks),
    )


def _moved(chunk: Chunk, loaded: LoadedConversation, row: Row) -> bool:
    """Whether the chunk's text stands as it did, at another place or under another title."""
    return (chunk.ordinal, loaded.view.title, _sources(chunk, loaded)) != (
        row["ordinal"],
        row["title"],
        row["sources_json"],
    )


async def _apply_all(ports: Ports, plans: Sequence[_Plan]) -> dict[str, Outcome]:
    """Apply ``plans`` together or, where that fails for one of them, one by one."""
    if not plans:
        return {}
    try:
        await _apply(ports, plans)
    except (CatalogError, IndexUnavailable) as error:
        if len(plans) > 1:
            return {job_id: outcome for plan in plans for job_id, outcome in (await _apply_all(ports, [plan])).items()}
        if not await jobs.renew(ports, plans[0].job):
            return {plans[0].job.job_id: DONE}  # another turn has this conversation now
        code = Code.DERIVED_INDEXING if isinstance(error, IndexUnavailable) else Code.RETRYABLE_INFRASTRUCTURE
        return {
            plans[0].job.job_id: Outcome("failed", code, f"the index could not be written ({type(error).__name__})")
        }
    return {plan.job.job_id: DONE for plan in plans}


async def _apply(ports: Ports, plans: Sequence[_Plan]) -> None:
    """:raises CatalogError: when a lease was lost, too; nothing of that batch has happened then.
    :raises IndexUnavailable:"""
    generation = generation_of(ports)
    doomed = [vector_id for plan in plans for _, vector_id in plan.gone]
    for start in range(0, len(doomed), VECTOR_MAX_DELETE):
        await ports.vectors.delete(doomed[start : start + VECTOR_MAX_DELETE])
    await ports.catalog.batch([*_while_leased(plans), *_row_statements(plans, generation)])
    embedded = await _embed(ports, plans, generation)
    now = timestamps.from_ms(ports.clock.now_ms())
    await ports.catalog.batch(
        [
            *_while_leased(plans),
            *(
                Statement(
                    "UPDATE chunks SET embedded = 1 WHERE chunk_id IN (SELECT value FROM json_each(?))", (parameter,)
                )
                for parameter in bulk.json_parameters(embedded)
            ),
            *(statement for plan in plans for statement in _end(plan, generation, now)),
        ]
    )


def _while_leased(plans: Sequence[_Plan]) -> list[Statement]:
    """Statements that fail, and their batch with them, unless every plan's job is still this turn's."""
    sql = (
        "SELECT json(CASE WHEN EXISTS (SELECT 1 FROM json_each(?) AS held LEFT JOIN jobs AS j"
        " ON j.job_id = held.value ->> 0 AND j.lease_owner = held.value ->> 1 WHERE j.job_id IS NULL)"
        " THEN 'a lease was lost' ELSE '0' END)"
    )
    held = ([plan.job.job_id, plan.job.owner] for plan in plans)
    return [Statement(sql, (parameter,)) for parameter in bulk.json_parameters(held)]


def _row_statements(plans: Sequence[_Plan], generation: Generation) -> list[Statement]:
    moved = (
        [chunk.id, chunk.ordinal, utf8_safe(plan.loaded.view.title), _sources(chunk, plan.loaded)]
        for plan in plans
        if plan.loaded
        for chunk in plan.moved
    )
    return [
        *bulk.delete("chunks", "chunk_id", (chunk_id for plan in plans for chunk_id, _ in plan.gone)),
        *(
            Statement(
                "UPDATE chunks SET ordinal = given.value ->> 1, title = given.value ->> 2,"
                " sources_json = given.value ->> 3 FROM json_each(?) AS given"
                " WHERE chunks.chunk_id = given.value ->> 0",
                (parameter,),
            )
            for parameter in bulk.json_parameters(moved)
        ),
        *bulk.insert("chunks", _CHUNK, (row for plan in plans for row in _rows(plan, generation))),
        *(
            Statement(
                "UPDATE index_state SET status = 'text', chunk_count = ?"
                " WHERE account_id = ? AND conversation_id = ? AND generation = ? AND head_seq = ?",
                (plan.count, plan.job.account, plan.job.subject_id, generation.id, plan.loaded.head_seq),
            )
            for plan in plans
            if plan.loaded
        ),
    ]


def _rows(plan: _Plan, generation: Generation) -> list[list[SqlValue]]:
    if plan.loaded is None:
        return []
    title = utf8_safe(plan.loaded.view.title)
    rows: list[list[SqlValue]] = []
    for chunk in plan.new:
        body = utf8_safe(chunk.body)
        rows.append(
            [
                chunk.id,
                canonical.vector_id(generation.id, chunk.id),
                plan.job.account,
                plan.job.subject_id,
                generation.id,
                chunk.branch_key,
                chunk.ordinal,
                title,
                body,
                terms.grams(f"{title}\n{body}"),
                chunk.token_estimate,
                chunk.created_at,
                _sources(chunk, plan.loaded),
            ]
        )
    return rows


def _sources(chunk: Chunk, loaded: LoadedConversation) -> str:
    """The chunk's sources as JSON rows: node id, sequence, start, end, place of the node's line."""
    return json.dumps(
        [
            [source.source_node_id, source.sequence, source.start, source.end, loaded.places[source.source_node_id]]
            for source in chunk.sources
        ],
        separators=(",", ":"),
    )


async def _embed(ports: Ports, plans: Sequence[_Plan], generation: Generation) -> list[str]:
    """Embed and upsert every chunk of ``plans`` that has no vector yet, and return their ids."""
    views = {plan.job.subject_id: plan.loaded.view for plan in plans if plan.loaded}
    rows: list[Row] = []
    for parameter in bulk.json_parameters(views):
        rows += await ports.catalog.query(
            "SELECT chunk_id, vector_id, account_id, conversation_id, body FROM json_each(?) AS wanted"
            " CROSS JOIN chunks ON conversation_id = wanted.value AND generation = ? AND embedded = 0",
            (parameter, generation.id),
        )
    records: list[VectorRecord] = []
    for start in range(0, len(rows), _EMBED_TEXTS):
        some = rows[start : start + _EMBED_TEXTS]
        vectors = await ports.embedder.embed([row["body"] for row in some], kind="passage")
        for row, vector in zip(some, vectors, strict=True):
            view = views[row["conversation_id"]]
            metadata = {
                "account": row["account_id"],
                "generation": generation.id,
                "namespace": view.namespace,
                "source_type": view.source_type,
            }
            records.append(VectorRecord(row["vector_id"], vector, metadata))
        if len(records) + _EMBED_TEXTS > VECTOR_MAX_UPSERT or start + _EMBED_TEXTS >= len(rows):
            await ports.vectors.upsert(records)
            records = []
    return [row["chunk_id"] for row in rows]


def _end(plan: _Plan, generation: Generation, now: str) -> list[Statement]:
    key = (plan.job.account, plan.job.subject_id, generation.id)
    if plan.loaded is None:
        state = Statement(
            "DELETE FROM index_state WHERE account_id = ? AND conversation_id = ? AND generation = ?", key
        )
    else:
        state = Statement(
            "UPDATE index_state SET status = 'indexed', error_code = NULL, indexed_at = ?"
            " WHERE account_id = ? AND conversation_id = ? AND generation = ? AND head_seq = ?",
            (now, *key, plan.loaded.head_seq),
        )
    return [state, jobs.finished(plan.job)]
