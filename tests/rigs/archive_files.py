"""Archive files in tests: written from a store, read into another."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from mempersist.archive.model import OWNER
from mempersist.ports import ObjectStore
from mempersist_ops.archive_file import layout, restore
from mempersist_ops.archive_file.export import export
from mempersist_ops.stores.memory.objects import MemoryObjectStore


async def exported(store: ObjectStore, path: Path, *, sources: bool = True) -> layout.Summary:
    return await export(store, OWNER, path, sources=sources)


async def restored(path: Path, into: ObjectStore | None = None) -> ObjectStore:
    """The store that a checked file gives, a new one unless named."""
    store: ObjectStore = into if into is not None else MemoryObjectStore()
    with restore.opened(path) as archive:
        summary = await restore.check(archive)
        await restore.check_fits(archive, store)
        await restore.copy(archive, store, summary)
    return store


async def contents(store: ObjectStore) -> dict[str, bytes]:
    """Every object of a store of fewer than a thousand."""
    page = await store.list("")
    assert page.cursor is None
    return {info.key: await store.get(info.key) for info in page.objects}


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path: Path, change: Callable[[dict[str, bytes]], Mapping[str, bytes]]) -> Path:
    """The file with its members changed, beside the old one."""
    changed = path.with_name(f"changed-{path.name}")
    with zipfile.ZipFile(changed, "w") as archive:
        for name, data in change(members(path)).items():
            archive.writestr(name, data)
    return changed
