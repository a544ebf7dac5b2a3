"""The upload is, part by part, what Cloudflare's own command line would send of the same files."""

from __future__ import annotations

import json
import subprocess
from email import message_from_bytes
from email.policy import HTTP
from pathlib import Path
from typing import Any

import httpx
import pytest

from mempersist_ops import bundle
from mempersist_ops.bundle import form
from tests.rigs.command import environment
from tests.rigs.worker.process import CACHE, NODE

WRANGLER = Path(__file__).parent / "wrangler" / "node_modules" / "wrangler" / "bin" / "wrangler.js"

pytestmark = pytest.mark.worker


def parts(content_type: str, body: bytes) -> dict[str, tuple[str | None, str, bytes]]:
    """The parts of a form by name: filename, media type and contents."""
    message = message_from_bytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body, policy=HTTP)
    found = {}
    for part in message.iter_parts():
        disposition = part["Content-Disposition"].params
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        found[disposition["name"]] = (disposition.get("filename"), part.get_content_type(), content)
    return found


def wranglers(made: bundle.Bundle, directory: Path) -> dict[str, tuple[str | None, str, bytes]]:
    """What ``wrangler deploy`` would send of the bundle laid out on disk."""
    project, sent = directory / "worker", directory / "sent"
    bundle.write(made, project)
    (project / "wrangler.json").write_text(json.dumps({"name": "memory", "main": "entry.py", **dates()}))
    subprocess.run(
        [NODE, str(WRANGLER), "deploy", "--dry-run", "--outfile", str(sent)],
        cwd=project,
        env=environment(WRANGLER_SEND_METRICS="false", CI="1"),
        check=True,
        capture_output=True,
        timeout=120,
    )
    body = sent.read_bytes()
    boundary = body[2 : body.index(b"\r\n")].decode()
    return parts(f"multipart/form-data; boundary={boundary}", body)


def dates() -> dict[str, Any]:
    about = form.metadata()
    return {name: about[name] for name in ("compatibility_date", "compatibility_flags")}


def test_every_part_has_the_name_the_type_and_the_bytes_that_wrangler_gives_it(tmp_path: Path) -> None:
    assert WRANGLER.exists(), "the Node packages are missing; run: make test-worker"
    made = bundle.build(bundle.find_sources(), CACHE / "wheels")
    request = httpx.Request("POST", "https://example.com", files=bundle.upload_form(made, form.metadata()))
    ours = parts(request.headers["content-type"], request.read())
    theirs = wranglers(made, tmp_path)
    about, sent = json.loads(ours.pop("metadata")[2]), json.loads(theirs.pop("metadata")[2])
    assert {name: sent[name] for name in about} == about
    assert set(ours) == set(theirs)
    assert {name: part for name, part in ours.items() if theirs[name] != part} == {}
