"""Index generations: which chunking, model and dimensions an index holds."""

from __future__ import annotations

from dataclasses import dataclass

from mempersist import timestamps
from mempersist.index.chunking import STRATEGY
from mempersist.ports import AccountId, Ports, Statement


@dataclass(frozen=True, slots=True)
class Generation:
    id: str
    strategy: str
    model: str
    dimensions: int


def generation_of(ports: Ports) -> Generation:
    """The generation that this program writes: its chunking with the host's embedding model."""
    model = ports.embedder.model
    return Generation(f"{model.name}-{STRATEGY}", STRATEGY, model.name, model.dimensions)


async def ensure_generation(ports: Ports) -> None:
    """The generation has its row, and is active where none was."""
    generation = generation_of(ports)
    now = timestamps.from_ms(ports.clock.now_ms())
    await ports.catalog.query(
        "INSERT INTO index_generations"
        " (generation, status, strategy, embedding_model, dimensions, created_at, activated_at)"
        " SELECT ?1, 'active', ?2, ?3, ?4, ?5, ?5"
        " WHERE NOT EXISTS (SELECT 1 FROM index_generations WHERE status = 'active')"
        " ON CONFLICT (generation) DO NOTHING",
        (generation.id, generation.strategy, generation.model, generation.dimensions, now),
    )


async def active_generation(ports: Ports) -> str:
    """The generation that searches use: the one marked active, or this program's own before there is any."""
    rows = await ports.catalog.query("SELECT generation FROM index_generations WHERE status = 'active'")
    return str(rows[0]["generation"]) if rows else generation_of(ports).id


def enqueue_statements(
    account: AccountId, conversation_id: str, head_seq: int, revision_id: str | None, generation: str, now: str
) -> list[Statement]:
    """Statements that mark a conversation as waiting for the index at this head entry."""
    return [
        Statement(
            "INSERT INTO index_state"
            " (conversation_id, generation, account_id, head_seq, revision_id, status, queued_at)"
            " VALUES (?1, ?2, ?3, ?4, ?5, 'queued', ?6) ON CONFLICT (conversation_id, generation) DO UPDATE SET"
            " head_seq = ?4, revision_id = ?5, status = 'queued', error_code = NULL, queued_at = ?6",
            (conversation_id, generation, account, head_seq, revision_id, now),
        )
    ]
