"""The safetensors file format: eight bytes of header size, a JSON header, then the tensors one after the other."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_MAX_HEADER_BYTES = 100_000_000


class InvalidFile(ValueError):
    """The file is not what a safetensors file has to be."""


def read(path: Path) -> dict[str, Array]:
    """The tensors of ``path`` by name, each a read-only view into the mapped file: bytes are read when used.

    :raises OSError: if the file cannot be opened.
    :raises InvalidFile: if the header is broken, names an unknown type, or promises more bytes than there are.
    """
    with path.open("rb") as file:
        file_size = file.seek(0, io.SEEK_END)
        file.seek(0)
        header_size = int.from_bytes(file.read(8), "little")
        size = file_size - 8 - header_size
        if size < 0 or header_size > _MAX_HEADER_BYTES:
            raise InvalidFile(f"{path.name}: the file is cut short or is not a safetensors file")
        try:
            header = json.loads(file.read(header_size))
            entries = [_entry(name, values) for name, values in header.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidFile(f"{path.name}: the header cannot be read") from error
        data = np.memmap(file, dtype=np.uint8, mode="r", offset=8 + header_size) if size else np.empty(0, np.uint8)
    for entry in entries:
        if not 0 <= entry.begin <= entry.end <= size or entry.end - entry.begin != entry.bytes_needed:
            raise InvalidFile(f"{path.name}: tensor {entry.name} does not fit its shape or the file")
    return {
        entry.name: np.asarray(data[entry.begin : entry.end]).view(entry.dtype).reshape(entry.shape)
        for entry in entries
    }


@dataclass(frozen=True, slots=True)
class _Entry:
    """One tensor of the header; ``begin`` and ``end`` count bytes after it."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def bytes_needed(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape)


def _entry(name: str, values: Mapping[str, Any]) -> _Entry:
    begin, end = values["data_offsets"]
    numbers = (begin, end, *values["shape"])
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError("sizes and offsets are integers from 0")
    return _Entry(name, _DTYPES[values["dtype"]], tuple(values["shape"]), begin, end)


def write(path: Path, tensors: Mapping[str, Array], *, metadata: Mapping[str, str]) -> None:
    """Write ``tensors`` to ``path``; the same arguments in the same order give the same bytes.

    The header is padded to eight bytes, so that a mapped tensor is aligned if those before it fill whole words.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    parts: list[bytes] = []
    offset = 0
    for name, tensor in tensors.items():
        data = np.ascontiguousarray(tensor, dtype=tensor.dtype.newbyteorder("<")).tobytes()
        header[name] = {
            "dtype": _NAMES[tensor.dtype.newbyteorder("<")],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(data)],
        }
        parts.append(data)
        offset += len(data)
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + b"".join(parts))
