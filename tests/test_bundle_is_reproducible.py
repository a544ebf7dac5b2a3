"""The same sources give the same bundle, and any change of what is uploaded changes its digest."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mempersist_ops import bundle
from mempersist_ops.bundle import Bundle, BundleError, Module
from tests.rigs.bundles import LOCKED, sources, tree
from tests.rigs.command import mempersist


def test_two_builds_are_equal_byte_for_byte(tmp_path: Path) -> None:
    one, other = sources(tmp_path / "one"), sources(tmp_path / "other")
    first, second = (bundle.build(each, LOCKED) for each in (one, other))
    assert first == second
    assert first.manifest_json() == second.manifest_json()


def test_the_order_of_files_on_disk_does_not_count(tmp_path: Path) -> None:
    made = sources(tmp_path)
    before = bundle.build(made, LOCKED).digest
    path = made.packages[0] / "host.py"
    text = path.read_text()
    path.unlink()
    (made.packages[0] / "__pycache__").mkdir()
    (made.packages[0] / "__pycache__" / "host.cpython-311.pyc").write_bytes(b"compiled")
    path.write_text(text)
    assert bundle.build(made, LOCKED).digest == before


@pytest.mark.parametrize("change", [{"name": "other.py"}, {"type": "text/plain"}, {"data": b"pass\n"}])
def test_a_name_a_type_and_a_byte_change_the_digest(change: dict[str, object]) -> None:
    module = Module("entry.py", "text/x-python", b"")
    assert Bundle((module,)).digest != Bundle((replace(module, **change),)).digest  # type: ignore[arg-type]


def test_what_is_written_is_what_is_uploaded(tmp_path: Path) -> None:
    made = bundle.build(sources(tmp_path / "sources"), LOCKED)
    bundle.write(made, tmp_path / "out")
    written = {path.relative_to(tmp_path / "out").as_posix(): path.read_bytes() for path in tree(tmp_path / "out")}
    assert written == {module.name: module.data for module in made.modules}
    with pytest.raises(BundleError, match="is not empty"):
        bundle.write(made, tmp_path / "out")


@pytest.mark.worker
def test_the_command_says_size_count_and_digest(tmp_path: Path) -> None:
    said = mempersist("bundle", "--json", "--out", tmp_path / "out")
    manifest = json.loads(said.stdout)
    assert manifest["digest"] == bundle.build(bundle.find_sources(), Path(".cache/worker/wheels")).digest
    assert len(manifest["modules"]) == len(tree(tmp_path / "out"))
    assert manifest["digest"] in mempersist("bundle").stdout
    refused = mempersist("bundle", "--out", tmp_path / "out")
    assert (refused.returncode, "is not empty" in refused.stderr) == (1, True)
