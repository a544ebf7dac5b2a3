"""Promise 1: the catalog comes back row for row from the object store, whatever was done before."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mempersist.archive import compaction, memories, replacing, tagging
from mempersist.archive.copying import CopyRequest
from mempersist.archive.deletion import delete_conversation
from mempersist.archive.importing import ImportItem, import_conversations
from mempersist.archive.memories import NewMessage
from mempersist.archive.model import OWNER
from mempersist.catalog.digest import digest
from mempersist.errors import MempersistError
from mempersist.recovery.rebuild import rebuild_catalog
from tests.rigs import conversations as make
from tests.rigs.worlds import World, drain, memory_world, with_empty_catalog
from tests.rigs.writes import copy

messages = st.lists(make.texts, min_size=1, max_size=3).map(
    lambda items: [NewMessage("user", "x" + item) for item in items]
)
sources = st.sampled_from(["alpha", "beta", "gamma"])


class AnyHistory(RuleBasedStateMachine):
    """Imports, every kind of write, deletions and compactions in any order; after each, a rebuild is compared."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.world: World = self.run(memory_world())
        self.imports = 0

    def run(self, coroutine: Any) -> Any:
        return self.runner.run(coroutine)

    def teardown(self) -> None:
        self.runner.close()

    def live(self) -> list[Any]:
        rows = self.run(
            self.world.ports.catalog.query(
                "SELECT conversation_id, revision_id FROM conversations"
                " WHERE deleted_at IS NULL ORDER BY conversation_id"
            )
        )
        return list(rows)

    @rule(data=st.data(), names=st.lists(sources, min_size=1, max_size=3, unique=True))
    def import_an_export(self, data: st.DataObject, names: list[str]) -> None:
        self.imports += 1
        items = [ImportItem(f"0:{index}", data.draw(make.conversations(name))) for index, name in enumerate(names)]
        self.run(
            import_conversations(
                self.world.ports, OWNER, f"import-{self.imports}", "personal", items, extra=lambda outcomes: []
            )
        )

    @rule(new=messages, tags=st.lists(st.sampled_from(["a", "b", "c"]), max_size=3), key=st.sampled_from([None, "k1"]))
    def store(self, new: list[NewMessage], tags: list[str], key: str | None) -> None:
        with contextlib.suppress(MempersistError):  # the key may stand for another request by now
            self.run(
                memories.store(
                    self.world.ports,
                    OWNER,
                    title="T",
                    namespace="work",
                    tags=tags,
                    messages=new,
                    idempotency_key=key,
                )
            )

    @precondition(lambda self: self.live())
    @rule(data=st.data(), new=messages, tags=st.lists(st.sampled_from(["c", "d"]), max_size=2))
    def append(self, data: st.DataObject, new: list[NewMessage], tags: list[str]) -> None:
        row = data.draw(st.sampled_from(self.live()))
        self.run(
            memories.append(
                self.world.ports,
                OWNER,
                conversation_id=row["conversation_id"],
                base_revision_id=row["revision_id"],
                messages=new,
                tags=tags,
            )
        )

    @precondition(lambda self: self.live())
    @rule(data=st.data(), new=messages, key=st.sampled_from([None, "k1", "k2"]))
    def replace(self, data: st.DataObject, new: list[NewMessage], key: str | None) -> None:
        row = data.draw(st.sampled_from(self.live()))
        with contextlib.suppress(MempersistError):  # the key may stand for another request by now
            self.run(
                replacing.replace_transcript(
                    self.world.ports,
                    OWNER,
                    conversation_id=row["conversation_id"],
                    base_revision_id=row["revision_id"],
                    messages=new,
                    idempotency_key=key,
                )
            )

    @precondition(lambda self: self.live())
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(self.live()))
        known = self.run(
            self.world.ports.catalog.query(
                "SELECT revision_id FROM revisions WHERE conversation_id = ? ORDER BY first_seq",
                (row["conversation_id"],),
            )
        )
        self.run(
            replacing.restore_revision(
                self.world.ports,
                OWNER,
                conversation_id=row["conversation_id"],
                revision_id=data.draw(st.sampled_from(known))["revision_id"],
                base_revision_id=row["revision_id"],
            )
        )

    @precondition(lambda self: self.live())
    @rule(data=st.data(), add=st.sampled_from(["a", "d"]), remove=st.sampled_from(["a", "b"]))
    def change_tags(self, data: st.DataObject, add: str, remove: str) -> None:
        row = data.draw(st.sampled_from(self.live()))
        self.run(
            tagging.update_tags(
                self.world.ports,
                OWNER,
                conversation_id=row["conversation_id"],
                base_revision_id=row["revision_id"],
                add=[add],
                remove=[remove],
            )
        )

    @precondition(lambda self: self.live())
    @rule(data=st.data(), key=st.sampled_from(["c1", "c2"]))
    def copy(self, data: st.DataObject, key: str) -> None:
        row = data.draw(st.sampled_from(self.live()))
        with contextlib.suppress(MempersistError):  # the key may stand for another request by now
            self.run(copy(self.world.ports, CopyRequest(row["conversation_id"]), key=key))

    @precondition(lambda self: self.live())
    @rule(data=st.data(), purge=st.booleans())
    def delete(self, data: st.DataObject, purge: bool) -> None:
        row = data.draw(st.sampled_from(self.live()))
        self.run(delete_conversation(self.world.ports, OWNER, row["conversation_id"]))
        self.run(drain(self.world))

    @precondition(lambda self: self.live())
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(self.live()))
        self.run(compaction.compact(self.world.ports, OWNER, row["conversation_id"], above=1))

    @rule()
    def time_passes(self) -> None:
        self.world.clock.advance(60_000)

    @invariant()
    def a_rebuild_into_an_empty_database_gives_the_same_rows(self) -> None:
        live = self.run(digest(self.world.ports.catalog))
        rebuilt = self.run(with_empty_catalog(self.world))
        report = self.run(rebuild_catalog(rebuilt.ports))
        assert report.damaged == []
        assert self.run(digest(rebuilt.ports.catalog)) == live

    @invariant()
    def a_rebuild_over_the_live_database_changes_nothing(self) -> None:
        live = self.run(digest(self.world.ports.catalog))
        self.run(rebuild_catalog(self.world.ports))
        assert self.run(digest(self.world.ports.catalog)) == live


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(
    max_examples=15, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
