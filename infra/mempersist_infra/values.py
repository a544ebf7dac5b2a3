"""Reading single settings: a parser a kind of value, and a reader that gathers what is wrong."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

_SHOWN_CHARS: Final = 60
_HEX32: Final = re.compile(r"[0-9a-f]{32}")
_LABEL: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
_ADDRESS: Final = re.compile(r"[^\s@<>,;\"]{1,64}@([^\s@]+)")
_GENERATION: Final = re.compile(r"[a-z0-9]{1,8}")
_HOST_CHARS: Final = 253

Value = TypeVar("Value")


class SettingsError(Exception):
    """Settings are wrong. The message has a line for each: the key, its value, and the way out."""


class Reader:
    """Takes settings one by one; what is wrong is kept until :meth:`finish`."""

    def __init__(self, namespace: str, keys: Sequence[str], given: Mapping[str, Any]) -> None:
        self.given = dict(given)
        self.faulty: set[str] = set()
        self._namespace = namespace
        self._wrong: list[str] = []
        for key in sorted(set(self.given) - set(keys)):
            near = difflib.get_close_matches(key, keys, 1)
            self.wrong(key, f"is no setting; {f'{near[0]} is one' if near else 'Pulumi.example.yaml lists them all'}")

    def wrong(self, key: str, why: str) -> None:
        """Note that a setting is wrong. ``why`` goes on from the key."""
        self.faulty.add(key)
        shown = f" ({_shown(self.given[key])})" if key in self.given else ""
        self._wrong.append(f"{self._namespace}:{key}{shown} {why}")

    def required(self, key: str, parse: Callable[[str], str]) -> str:
        """The setting, or an empty text where it is missing or wrong, which is noted."""
        if key not in self.given:
            self.wrong(key, f"is missing; set it with: pulumi config set {self._namespace}:{key} VALUE")
        return self.optional(key, parse) or ""

    def optional(self, key: str, parse: Callable[[str], str]) -> str | None:
        """The setting; None where it is missing, or wrong, which is noted."""
        if key not in self.given:
            return None
        try:
            return parse(_text(self.given[key]))
        except ValueError as error:
            self.wrong(key, str(error))
            return None

    def choice(self, key: str, among: Sequence[str], default: str | None) -> str | None:
        """One of some words."""

        def parse(text: str) -> str:
            if text not in among:
                raise ValueError(f"must be one of: {', '.join(among)}")
            return text

        found = self.optional(key, parse)
        return default if found is None else found

    def flag(self, key: str, *, default: bool) -> bool:
        """``true`` or ``false``."""
        found = self.choice(key, ("true", "false"), None)
        return default if found is None else found == "true"

    def words(self, key: str, parse: Callable[[str], str]) -> tuple[str, ...]:
        """Words apart by blanks; empty where the setting is missing, or one word is wrong, which is noted."""
        if key not in self.given:
            return ()
        given = self.given[key]
        try:
            return tuple(parse(word) for word in (given if isinstance(given, list) else _text(given).split()))
        except ValueError as error:
            self.wrong(key, f"holds a word that {error}")
            return ()

    def finish(self) -> None:
        """:raises SettingsError: if anything was wrong."""
        if self._wrong:
            raise SettingsError("\n".join(self._wrong))


def hex32(text: str) -> str:
    """An id of Cloudflare."""
    if not _HEX32.fullmatch(text):
        raise ValueError("must be an id of 32 hexadecimal digits in lower case, as the dashboard's overview shows it")
    return text


def line(text: str) -> str:
    """A name that people read."""
    if not text.strip() or not text.isprintable() or text != text.strip():
        raise ValueError("must be the name as the dashboard shows it, on one line")
    return text


def label(text: str) -> str:
    """One part of a host's name."""
    if not _LABEL.fullmatch(text):
        raise ValueError("must be one label: 1 to 63 of a-z, 0-9 and -, with no - at either end")
    return text


def hostname(text: str) -> str:
    """A host's whole name."""
    parts = text.split(".")
    if len(text) > _HOST_CHARS or len(parts) < 2 or not all(_LABEL.fullmatch(part) for part in parts):
        raise ValueError("must be a host's name in lower case, such as memory.example.com, without scheme or path")
    return text


def address(text: str) -> str:
    """A mail address."""
    found = _ADDRESS.fullmatch(text)
    if found is None or not _is_hostname(found[1].lower()):
        raise ValueError("must be a mail address, such as you@example.com")
    return text


def address_or_domain(text: str) -> str:
    """A mail address, or ``@`` and a domain for everybody in it."""
    if text.startswith("@"):
        if not _is_hostname(text[1:].lower()):
            raise ValueError("must be a mail address, or @ and a domain, such as @example.com")
        return text
    return address(text)


def origin(text: str) -> str:
    """Scheme and host of a page."""
    scheme, _, host = text.partition("://")
    if scheme != "https" or not _is_hostname(host):
        raise ValueError("must be an origin such as https://claude.ai, without path or slash at its end")
    return text


def generation(text: str) -> str:
    """The short name of an index generation."""
    if not _GENERATION.fullmatch(text):
        raise ValueError("must be 1 to 8 of a-z and 0-9, such as g1")
    return text


def _is_hostname(text: str) -> bool:
    try:
        hostname(text)
    except ValueError:
        return False
    return True


def _text(given: Any) -> str:
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, str):
        return given
    return json.dumps(given)


def _shown(given: Any) -> str:
    text = _text(given)
    return json.dumps(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…", ensure_ascii=False)
