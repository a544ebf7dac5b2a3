"""A stranger's path: import an export, look at it, search it, take it elsewhere; each step a process of its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mempersist_ops import sample
from tests.rigs.command import answer, environment, mempersist


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample.build(tmp_path_factory.mktemp("export") / "sample-export.zip")


@pytest.fixture(scope="module")
def archive(export: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A data directory with the sample in it, and the receipt that the import printed."""
    data_dir = tmp_path_factory.mktemp("archive") / "data"
    return data_dir, answer("import", export, "--data-dir", data_dir)


@pytest.fixture
def copy(archive: tuple[Path, Any], tmp_path: Path) -> Path:
    shutil.copytree(archive[0], tmp_path / "copy")
    return tmp_path / "copy"


def search(data_dir: Path, query: str = sample.DEMO_QUERY) -> Any:
    return answer("search", query, "--data-dir", data_dir)


def test_the_receipt_says_what_was_found_and_it_adds_up(archive: tuple[Path, Any]) -> None:
    _, receipt = archive
    assert receipt["status"] == "complete"
    for name in ("conversations", "messages", "assets"):
        counts = receipt["counts"][name]
        assert counts["found"] == sum(counts[fate] for fate in ("imported", "unchanged", "skipped", "failed"))
        assert counts["imported"] > 0
    assert receipt["findings"]


def test_what_was_imported_is_found(archive: tuple[Path, Any]) -> None:
    found = search(archive[0])
    assert (found["degraded"], found["unavailable"]) == (False, [])
    assert found["results"]
    people = mempersist("search", sample.DEMO_QUERY, "--data-dir", archive[0])
    assert people.returncode == 0
    assert found["results"][0]["title"] in people.stdout


def test_search_narrows_by_limit_namespace_and_tag(archive: tuple[Path, Any]) -> None:
    data_dir, _ = archive
    assert len(answer("search", "the", "--limit", "2", "--data-dir", data_dir)["results"]) <= 2
    assert answer("search", "the", "--tag", "no such tag", "--data-dir", data_dir)["results"] == []
    foreign = mempersist("search", "the", "--namespace", "not mine", "--data-dir", data_dir)
    assert foreign.returncode == 1
    assert "namespace" in foreign.stderr


def test_status_tells_of_the_archive_and_of_each_import(archive: tuple[Path, Any]) -> None:
    data_dir, receipt = archive
    totals = answer("status", "--data-dir", data_dir)
    assert totals["stats"]["totals"]["conversations"] == receipt["counts"]["conversations"]["imported"]
    assert totals["stats"]["indexing"]["pending"] == 0
    assert [item["id"] for item in totals["imports"]] == [receipt["importId"]]
    one = answer("status", receipt["importId"], "--data-dir", data_dir)
    assert (one["status"], one["sha256"]) == (receipt["status"], receipt["sha256"])
    assert receipt["importId"] in mempersist("status", receipt["importId"], "--data-dir", data_dir).stdout
    unknown = mempersist("status", "00000000-0000-4000-8000-000000000000", "--data-dir", data_dir)
    assert (unknown.returncode, "import not found" in unknown.stderr) == (1, True)


def test_the_same_file_again_is_a_duplicate(export: Path, archive: tuple[Path, Any], copy: Path) -> None:
    again = answer("import", export, "--data-dir", copy)
    assert (again["status"], again["duplicateOf"]) == ("duplicate", archive[1]["importId"])
    forced = answer("import", export, "--force", "--data-dir", copy)
    assert forced["counts"]["conversations"]["imported"] == 0
    assert forced["counts"]["conversations"]["unchanged"] > 0


def test_a_file_that_is_no_export_fails_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not an export")
    done = mempersist("import", tmp_path / "notes.txt", "--data-dir", tmp_path / "data", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"]


def test_an_export_with_broken_items_comes_in_without_them_and_exits_with_3(tmp_path: Path) -> None:
    good = {"id": "a", "title": "A", "mapping": {"n": {"id": "n", "message": {"content": {"parts": ["walrus"]}}}}}
    (tmp_path / "conversations.json").write_text(json.dumps([good, 42]))
    done = mempersist("import", tmp_path / "conversations.json", "--data-dir", tmp_path / "data")
    assert done.returncode == 3, done.stderr
    assert "conversations: 2 found = 1 imported, 0 unchanged, 0 skipped, 1 failed" in done.stdout


def test_an_export_restored_elsewhere_is_the_same_archive(archive: tuple[Path, Any], tmp_path: Path) -> None:
    data_dir, _ = archive
    written = answer("export", tmp_path / "archive.zip", "--data-dir", data_dir)
    restored = answer("import", tmp_path / "archive.zip", "--data-dir", tmp_path / "other")
    assert restored["catalogDigest"] == written["catalogDigest"]
    assert (restored["written"], restored["merged"]) == (written["objects"], False)
    assert search(tmp_path / "other") == search(data_dir)
    answer("export", tmp_path / "again.zip", "--data-dir", tmp_path / "other")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "archive.zip").read_bytes()


def test_a_directory_that_was_only_started_takes_an_archive(archive: tuple[Path, Any], tmp_path: Path) -> None:
    answer("export", tmp_path / "archive.zip", "--data-dir", archive[0])
    started = tmp_path / "started"
    mempersist("token", "--data-dir", started)
    assert answer("status", "--data-dir", started)["stats"]["totals"]["conversations"] == 0
    assert answer("import", tmp_path / "archive.zip", "--data-dir", started)["merged"] is False


def test_export_does_not_overwrite_unasked(copy: Path, tmp_path: Path) -> None:
    target = tmp_path / "archive.zip"
    target.write_text("something precious")
    refused = mempersist("export", target, "--data-dir", copy)
    assert (refused.returncode, "--overwrite" in refused.stderr) == (1, True)
    assert target.read_text() == "something precious"
    answer("export", target, "--overwrite", "--without-sources", "--data-dir", copy)
    assert target.read_bytes().startswith(b"PK")


def test_an_archive_file_is_restored_as_it_is_or_not_at_all(copy: Path, tmp_path: Path) -> None:
    answer("export", tmp_path / "archive.zip", "--data-dir", copy)
    for options in (["--namespace", "work"], ["--force"], ["--url", "http://127.0.0.1:1", "--token", "x"]):
        done = mempersist("import", tmp_path / "archive.zip", *options, "--data-dir", tmp_path / "new")
        assert (done.returncode, "restored as it is" in done.stderr) == (1, True)
    damaged = (tmp_path / "archive.zip").read_bytes()
    (tmp_path / "archive.zip").write_bytes(damaged[:2000] + b"x" + damaged[2001:])
    done = mempersist("import", tmp_path / "archive.zip", "--data-dir", tmp_path / "new")
    assert done.returncode == 1
    assert "archive file: " in done.stderr
    assert not (tmp_path / "new" / "objects" / "canonical").exists()


def test_the_demo_ends_with_an_answer(tmp_path: Path) -> None:
    done = mempersist("demo", "--no-serve", env=environment(XDG_DATA_HOME=str(tmp_path)))
    assert done.returncode == 0, done.stderr
    assert sample.DEMO_QUERY in done.stdout
    assert ": complete (" in done.stdout
    assert "mempersist serve --data-dir" in done.stdout
    assert [entry.name for entry in tmp_path.iterdir()] == ["mempersist-demo"]
