"""Compaction: a revision that grew by many small appends is written again in few segments. No id changes.

The old manifest and segments stay, since earlier revisions share them; a reader takes the manifest of the highest
compaction number.
"""

from __future__ import annotations

from mempersist import timestamps
from mempersist.archive import codec, keys, load, segments
from mempersist.catalog import fold, intents
from mempersist.concurrency import gather
from mempersist.limits import COMPACT_AFTER_SEGMENTS
from mempersist.ports import AccountId, CatalogError, Ports, PreconditionFailed


async def compact(
    ports: Ports, account: AccountId, conversation_id: str, *, above: int = COMPACT_AFTER_SEGMENTS
) -> bool:
    """Rewrite the current revision if it has more than ``above`` segments. Safe to repeat and to interrupt.

    :returns: whether it was rewritten.
    :raises CatalogError: / :raises StorageError: / :raises ObjectNotFound: / :raises UnreadableObject:
    """
    rows = await ports.catalog.query(
        "SELECT c.head_seq, r.revision_id, r.manifest_key FROM conversations AS c JOIN revisions AS r"
        " ON r.conversation_id = c.conversation_id AND r.revision_id = c.revision_id"
        " WHERE c.account_id = ? AND c.conversation_id = ? AND r.segment_count > ?",
        (account, conversation_id, above),
    )
    if not rows:
        return False
    intent = ports.ids.token(16)
    now = timestamps.from_ms(ports.clock.now_ms())
    await ports.catalog.batch([intents.begin(intent, account, [conversation_id], now)])
    loaded = await load.revision(ports.objects, await load.manifest(ports.objects, rows[0]["manifest_key"]))
    encoded = segments.encode_nodes(loaded.nodes)
    built = tuple(segments.build(conversation_id, encoded))
    await gather(
        ports.objects.put(keys.segment(conversation_id, segment.ref.sha256), segment.data) for segment in built
    )
    stored = fold.StoredManifest(
        fold.with_segments(loaded.stored.manifest, tuple(segment.ref for segment in built)),
        await _next_key(ports, conversation_id, rows[0]["revision_id"]),
    )
    try:
        await ports.objects.put(stored.key, codec.encode_manifest(stored.manifest), if_absent=True)
    except PreconditionFailed:
        return False  # another compaction was first; its own batch or the sweeper moves the rows
    placements = [placement for segment in built for placement in segment.placements]
    try:
        await ports.catalog.batch(
            [
                *fold.move_to_segments(
                    account, rows[0]["head_seq"], stored, fold.message_rows(placements, loaded.active)
                ),
                intents.settled(intent),
            ]
        )
    except CatalogError:
        return False  # the head moved on meanwhile; the sweeper settles the intent
    return True


async def _next_key(ports: Ports, conversation_id: str, revision_id: str) -> str:
    newest = (await load.manifests(ports.objects, conversation_id))[revision_id]
    number = newest.key.rsplit("/", 1)[1].removesuffix(".json").partition(".")[2]
    return keys.manifest(conversation_id, revision_id, int(number or 0) + 1)
