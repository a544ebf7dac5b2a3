"""An asset is what its bytes are, and its id is what its messages call it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist.imports.media import OCTETS, asset_id_of_member, asset_id_of_pointer, kind_of, sniff


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"\xff\xd8\xff\xe0..JFIF", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav"),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\x24\0\0\0ACON", OCTETS),
        (b"ID3\x04\0", "audio/mpeg"),
        (b"\xff\xfb\x90\x44", "audio/mpeg"),
        (b"\xff\xf1\x50\x80", OCTETS),
        (b"\0\0\0\x20ftypM4A \0\0", "audio/mp4"),
        (b"\0\0\0\x20ftypisom\0\0", "video/mp4"),
        (b"\0\0\0\x20ftypqt  \0\0", "video/quicktime"),
        (b"\0\0\0\x20ftypheic\0\0", "image/heic"),
        (b"OggS\0\x02", "audio/ogg"),
        (b"fLaC\0\0", "audio/flac"),
        (b"\x1aE\xdf\xa3\x01", "video/webm"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"PK\3\4\x14\0", "application/zip"),
        ("Guten Tag, schöne Welt".encode(), "text/plain"),
        ("cut in a character ü".encode()[:-1], "text/plain"),
        (b"", OCTETS),
        (b"\0\1\2\3", OCTETS),
        (b"latin \xfc text", OCTETS),
        (b"<!DOCTYPE html><html>", OCTETS),
        (b"  \n<SVG xmlns='http://www.w3.org/2000/svg' onload='x()'>", OCTETS),
        (b"<?xml version='1.0'?><svg>", OCTETS),
        (b"harmless words, then <script>x()</script>", OCTETS),
        (b"#!/bin/sh\n", OCTETS),
    ],
)
def test_media_types_by_the_first_bytes(head: bytes, media_type: str) -> None:
    assert sniff(head) == media_type


@given(st.binary(max_size=64))
def test_nothing_is_ever_said_to_be_something_a_browser_runs(head: bytes) -> None:
    for hostile in (b"<html>", b"<svg/onload=x>", b"<!-- --><script>"):
        assert not any(word in sniff(head + hostile) for word in ("html", "xml", "svg", "javascript"))


@pytest.mark.parametrize(
    ("pointer", "asset_id"),
    [
        ("file-service://file-AbC123", "file-AbC123"),
        ("sediment://file_00000000aa11", "file_00000000aa11"),
        ("sediment://file_00000000aa11#file_00000000aa11#p_0.jpg", "file_00000000aa11"),
        ("sediment://file_00000000aa11?shared=1", "file_00000000aa11"),
        ("file-AbC123", "file-AbC123"),
        ("0f1e2d", "0f1e2d"),
        ("sediment://0f1e2d", "0f1e2d"),
        ("sandbox:/mnt/data/plot.png", "sandbox:/mnt/data/plot.png"),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_the_id_behind_a_pointer(pointer: str, asset_id: str) -> None:
    assert asset_id_of_pointer(pointer) == asset_id


@pytest.mark.parametrize(
    ("name", "asset_id"),
    [
        ("file-AbC123-photo of me.png", "file-AbC123"),
        ("file-AbC123.dat", "file-AbC123"),
        ("user-X/file_00000000aa11-3333.png", "file_00000000aa11"),
        ("export/0f1e2d.dat", "0f1e2d"),
        ("0F1E.DAT", "0F1E"),
        (".dat", None),
        ("profile.json", None),
        ("files.json", None),
        ("user-X/photo.png", None),
    ],
)
def test_the_id_in_a_members_name(name: str, asset_id: str | None) -> None:
    assert asset_id_of_member(name) == asset_id


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [("image/png", "image"), ("AUDIO/wav", "audio"), ("video/mp4", "video"), ("text/plain", "file"), ("", "file")],
)
def test_the_kind_of_a_media_type(media_type: str, kind: str) -> None:
    assert kind_of(media_type) == kind
