"""The upload as Cloudflare's API takes it: one form, the metadata first, then a part for each module."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mempersist_ops.bundle.modules import COMPATIBILITY_DATE, COMPATIBILITY_FLAGS, MAIN, Bundle

Part = tuple[str, tuple[str | None, bytes, str]]
"""A part as httpx takes it: field name, and filename, contents and media type."""


def metadata(bindings: Sequence[Mapping[str, Any]] = (), **others: Any) -> dict[str, Any]:
    """What the API is told of the Worker. ``others`` are further fields of the API, such as ``observability``.

    Secrets that were set apart from an upload are kept by it: without that word an upload drops them.
    """
    return {
        "main_module": MAIN,
        "bindings": list(bindings),
        "compatibility_date": COMPATIBILITY_DATE,
        "compatibility_flags": list(COMPATIBILITY_FLAGS),
        "keep_bindings": ["secret_text", "secret_key"],
        **others,
    }


def upload_form(bundle: Bundle, about: Mapping[str, Any]) -> list[Part]:
    """The parts of the form. ``about`` is the :func:`metadata`."""
    text = json.dumps(about, separators=(",", ":")).encode()
    parts: list[Part] = [("metadata", (None, text, "application/json"))]
    return parts + [(module.name, (module.name, module.data, module.type)) for module in bundle.modules]
