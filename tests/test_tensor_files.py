"""A file of tensors gives back what was written, byte for byte the same each time; a damaged one is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mempersist_ops.embedding import safetensors

TENSORS: dict[str, safetensors.Array] = {
    "bytes": np.arange(-8, 8, dtype=np.int8).reshape(4, 4),
    "single": np.array([0.5, -1.25, np.inf], dtype=np.float32),
    "double": np.array([[1 / 3]]),
    "none": np.zeros((0, 3), dtype=np.float32),
}


def test_tensors_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "tensors"
    safetensors.write(path, TENSORS, metadata={"version": "1"})
    found = safetensors.read(path)
    assert list(found) == list(TENSORS)
    for name, tensor in TENSORS.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        assert found[name].tobytes() == tensor.tobytes()


def test_the_same_tensors_give_the_same_bytes_and_other_metadata_gives_others(tmp_path: Path) -> None:
    for name, version in (("one", "1"), ("two", "1"), ("three", "2")):
        safetensors.write(tmp_path / name, TENSORS, metadata={"version": version})
    one, two, three = ((tmp_path / name).read_bytes() for name in ("one", "two", "three"))
    assert one == two != three


def test_a_file_of_empty_tensors_can_be_read(tmp_path: Path) -> None:
    safetensors.write(tmp_path / "tensors", {"none": TENSORS["none"]}, metadata={})
    assert safetensors.read(tmp_path / "tensors")["none"].shape == (0, 3)


def test_a_tensor_read_cannot_be_written_to(tmp_path: Path) -> None:
    safetensors.write(tmp_path / "tensors", TENSORS, metadata={})
    with pytest.raises(ValueError, match="read-only"):
        safetensors.read(tmp_path / "tensors")["bytes"][0, 0] = 1


def test_a_big_endian_tensor_is_written_little_endian(tmp_path: Path) -> None:
    safetensors.write(tmp_path / "tensors", {"x": np.array([1, 2], dtype=">f4")}, metadata={})
    assert safetensors.read(tmp_path / "tensors")["x"].tolist() == [1, 2]


def file_of(header: bytes, data: bytes = b"") -> bytes:
    return len(header).to_bytes(8, "little") + header + data


def entry(**changes: object) -> bytes:
    return json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes}).encode()


DAMAGED = {
    "an empty file": b"",
    "less than the header's size": b"\x01\x00\x00",
    "a header that is longer than the file": (10**12).to_bytes(8, "little") + b"{}",
    "a header that is not JSON": file_of(b"{not json"),
    "a header that is not an object": file_of(b"[1, 2]"),
    "an unknown type": file_of(entry(dtype="F8_E4M3"), b"12345678"),
    "data cut short": file_of(entry(), b"1234"),
    "a shape that needs other bytes": file_of(entry(shape=[3]), b"12345678"),
    "a negative size": file_of(entry(shape=[-2]), b"12345678"),
    "offsets in the wrong order": file_of(entry(data_offsets=[8, 0]), b"12345678"),
    "a negative offset": file_of(entry(data_offsets=[-8, 0]), b"12345678"),
    "an entry without a shape": file_of(b'{"x": {"dtype": "F32"}}', b"12345678"),
    "text for offsets": file_of(entry(data_offsets="08"), b"12345678"),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tensors"
    path.write_bytes(content)
    with pytest.raises(safetensors.InvalidFile, match="tensors"):
        safetensors.read(path)
