"""Cursors that cannot be made or changed by their holder: they carry what a call resolved, such as pinned revisions.

A sealed cursor is URL-safe text over version, key tag, expiry, body and an HMAC-SHA-256 that also covers the kind of
listing and the account. It names no account and no key id. Whatever is wrong with one, the answer is the same.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

from mempersist import cursors
from mempersist.errors import Code, MempersistError, validation
from mempersist.limits import MAX_CURSOR_BYTES
from mempersist.ports import AccountId

Keys = Sequence[tuple[str, bytes]]

LIFETIME_SECONDS: Final = 15 * 60
LEAST_SECRET_BYTES: Final = 32
_VERSION: Final = 1
_TAG_BYTES: Final = 4
_EXPIRY_BYTES: Final = 6
_HEADER_BYTES: Final = 1 + _TAG_BYTES + _EXPIRY_BYTES
_MAC_BYTES: Final = 32


def parse_keys(text: str) -> tuple[tuple[str, bytes], ...]:
    """Cursor keys as they are configured: ``id:secret`` pairs apart by spaces or lines, the secret in hexadecimal.

    To rotate, put a new pair in front, and drop the old one a quarter of an hour later.

    :raises MempersistError: VALIDATION, without the secret, for anything else or a secret under 32 bytes.
    """
    keys: dict[str, bytes] = {}
    for pair in text.split():
        key_id, _, secret = pair.partition(":")
        try:
            keys[key_id] = b"" if key_id in keys else bytes.fromhex(secret)
        except ValueError:
            keys[key_id] = b""
        if not key_id or len(keys[key_id]) < LEAST_SECRET_BYTES:
            raise validation(
                "cursor keys", f"each is a new id, a colon and at least {LEAST_SECRET_BYTES} bytes in hexadecimal"
            )
    return tuple(keys.items())


def sealed_length(body_bytes: int) -> int:
    """Characters of the cursor over a body of ``body_bytes``."""
    return -(-(_HEADER_BYTES + body_bytes + _MAC_BYTES) * 4 // 3)


def seal(keys: Keys, kind: str, account: AccountId, body: bytes, now_ms: int) -> str:
    """A cursor over ``body`` that the same account can use for 15 minutes.

    :raises MempersistError: RETRYABLE_INFRASTRUCTURE if the server has no keys.
    """
    if not keys:
        raise MempersistError(
            Code.RETRYABLE_INFRASTRUCTURE,
            "the answer needs a cursor and this server has no cursor keys; its operator has to set them. Fewer or"
            " smaller requests need no cursor.",
            status=500,
        )
    key_id, secret = keys[0]
    expires = now_ms // 1000 + LIFETIME_SECONDS
    content = bytes((_VERSION,)) + _tag(key_id) + expires.to_bytes(_EXPIRY_BYTES, "big") + body
    return base64.urlsafe_b64encode(content + _mac(secret, kind, account, content)).rstrip(b"=").decode("ascii")


def unseal(keys: Keys, kind: str, account: AccountId, cursor: str, now_ms: int) -> bytes:
    """The body of a cursor that :func:`seal` made. :raises MempersistError: VALIDATION ``Invalid cursor``."""
    if len(cursor) > MAX_CURSOR_BYTES:
        raise cursors.invalid()
    try:
        data = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise cursors.invalid() from None
    content, mac = data[:-_MAC_BYTES], data[-_MAC_BYTES:]
    if len(content) < _HEADER_BYTES or content[0] != _VERSION:
        raise cursors.invalid()
    tag = content[1 : 1 + _TAG_BYTES]
    verified = [
        hmac.compare_digest(mac, _mac(secret, kind, account, content)) for key_id, secret in keys if _tag(key_id) == tag
    ]
    expires = int.from_bytes(content[1 + _TAG_BYTES : _HEADER_BYTES], "big")
    if not any(verified) or now_ms >= expires * 1000:
        raise cursors.invalid()
    return content[_HEADER_BYTES:]


def _tag(key_id: str) -> bytes:
    return hashlib.sha256(b"mempersist cursor key\x1f" + key_id.encode()).digest()[:_TAG_BYTES]


def _mac(secret: bytes, kind: str, account: AccountId, content: bytes) -> bytes:
    bound = b"\x1f".join((b"mempersist cursor", kind.encode(), account.encode(), b""))
    return hmac.digest(secret, bound + content, "sha256")
