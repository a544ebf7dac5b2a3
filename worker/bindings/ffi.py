"""Values across the border between Python and JavaScript."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import js
from pyodide.ffi import JsException, jsnull, to_js
from workers import python_to_rpc

_SURROGATES = (0xD800, 0xDFFF)


def binding(env: Any, name: str) -> Any:
    """The binding ``name`` as JavaScript has it. :raises AttributeError: naming a binding that is not there."""
    try:
        wrapped = getattr(env, name)
    except AttributeError:
        wrapped = None
    if is_nothing(wrapped):
        raise AttributeError(f"the Worker has no binding {name}; bind it in its configuration")
    return python_to_rpc(wrapped)


def variable(env: Any, name: str) -> str | None:
    """A text variable or secret, None where it is not set or empty."""
    value = getattr(env, name, None)
    return value if isinstance(value, str) and value else None


def is_nothing(value: Any) -> bool:
    """Whether ``value`` is what JavaScript calls null or undefined."""
    return value is None or value is jsnull


def js_object(fields: Mapping[str, Any]) -> Any:
    """A plain JavaScript object. Values are texts, numbers, booleans, JavaScript values, or such mappings."""
    return to_js(fields, dict_converter=js.Object.fromEntries)


def to_json_value(value: Any) -> Any:
    """A JavaScript value made of JSON's types, however deep. :raises ValueError: for NaN, which JSON has not."""
    return js.JSON.parse(json.dumps(value, allow_nan=False))


def from_json_value(value: Any) -> Any:
    """A JavaScript value of JSON's types as Python has it; what JSON has no word for is left out."""
    return json.loads(js.JSON.stringify(value))


def message_of(error: JsException) -> str:
    """What the platform said. It may quote what is stored: never pass it on or log it as it is."""
    return str(getattr(error, "message", "") or error)
