"""The one directory that holds everything the local host keeps.

::

    mempersist.json     marks the directory and its layout version
    lock                held shared by every running program, exclusively by a restore
    token               the bearer token, for the owner's eyes only
    cursor-keys         keys that sign cursors, one `id:secret` a line, the newest first
    restoring.json      there while a restore is under way: what it restores
    objects/            the canonical objects: the archive itself
    uploads/, tmp/      uploads in parts, and files that are being written
    catalog.sqlite3     projection of the objects, rebuilt by ``mempersist rebuild-catalog``
    vectors.sqlite3     vector index, rebuilt likewise
    queue.sqlite3       messages of background work
    outbox/             mails that a server on the internet would have sent
    sending/            how far an upload to another server got
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mempersist import sealing
from mempersist.errors import Code, MempersistError

VARIABLE: Final = "MEMPERSIST_DATA_DIR"
TOKEN_VARIABLE: Final = "MEMORY_API_TOKEN"  # noqa: S105 - a variable's name
LAYOUT: Final = "mempersist.data-directory.v1"
_TOKEN_BYTES: Final = 32
_BACKUP_KEY_BYTES: Final = 32
_KEY_ID_BYTES: Final = 4
_SHARE_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class DataDirectory:
    root: Path

    @property
    def marker(self) -> Path:
        return self.root / "mempersist.json"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def token(self) -> Path:
        return self.root / "token"

    @property
    def cursor_keys(self) -> Path:
        return self.root / "cursor-keys"

    @property
    def backup_key(self) -> Path:
        """Signs snapshots of backups, in hexadecimal."""
        return self.root / "backup-key"

    @property
    def restoring(self) -> Path:
        return self.root / "restoring.json"

    @property
    def objects(self) -> Path:
        return self.root / "objects"

    @property
    def catalog(self) -> Path:
        return self.root / "catalog.sqlite3"

    @property
    def vectors(self) -> Path:
        return self.root / "vectors.sqlite3"

    @property
    def queue(self) -> Path:
        return self.root / "queue.sqlite3"

    @property
    def outbox(self) -> Path:
        return self.root / "outbox"

    @property
    def sending(self) -> Path:
        return self.root / "sending"


def location(option: Path | None, environ: Mapping[str, str]) -> Path:
    """Where the data directory is: the option, else ``MEMPERSIST_DATA_DIR``, else ``mempersist`` in XDG's data home."""
    if option is not None:
        return option.absolute()
    if environ.get(VARIABLE):
        return Path(environ[VARIABLE]).expanduser().absolute()
    home = environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home).expanduser().absolute() / "mempersist"


def create(path: Path) -> DataDirectory:
    """The directory at ``path``, made if need be, for its owner alone (0700).

    :raises MempersistError: VALIDATION if it holds other things, belongs to a newer program or cannot be made.
    """
    directory = DataDirectory(path)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not directory.marker.exists():
            if any(not _is_ours(directory, entry.name) for entry in path.iterdir()):
                raise _refused(path, "holds other files; name an empty directory, or one that mempersist made")
            path.chmod(0o700)
            write_private(directory.marker, json.dumps({"format": LAYOUT}) + "\n")
    except OSError as error:
        raise _refused(path, f"cannot be used ({error.strerror})") from error
    return existing(path)


def _is_ours(directory: DataDirectory, name: str) -> bool:
    """What another program that makes this directory just now, or one that was killed doing so, may have left."""
    return name == directory.lock.name or name.startswith(f".{directory.marker.name}.")


def existing(path: Path) -> DataDirectory:
    """The directory at ``path``, which must be one already. :raises MempersistError: NOT_FOUND, or VALIDATION."""
    directory = DataDirectory(path)
    try:
        marker = json.loads(directory.marker.read_bytes())
    except FileNotFoundError:
        message = f"no archive at {path}; import an export first, or name its place with --data-dir"
        raise MempersistError(Code.NOT_FOUND, message) from None
    except (OSError, ValueError) as error:
        raise _refused(path, f"has a mempersist.json that cannot be read ({type(error).__name__})") from error
    if not isinstance(marker, dict) or marker.get("format") != LAYOUT:
        raise _refused(path, f"has another layout than {LAYOUT}; a newer mempersist made it")
    return directory


def api_token(directory: DataDirectory, environ: Mapping[str, str]) -> str:
    """``MEMORY_API_TOKEN`` if set, else the token file's, which is made (0600) on first use.

    :raises MempersistError: VALIDATION for a token file that is empty.
    """
    if environ.get(TOKEN_VARIABLE):
        return environ[TOKEN_VARIABLE].strip()
    if not directory.token.exists():
        write_private(directory.token, secrets.token_urlsafe(_TOKEN_BYTES) + "\n")
    token = directory.token.read_text(encoding="utf-8").strip()
    if not token:
        raise MempersistError(Code.VALIDATION, f"{directory.token} is empty; delete it, and a new token is made")
    return token


def backup_key(directory: DataDirectory) -> bytes:
    """The key that signs this archive's backups; made when first needed. Keep a copy where the backup is not.

    :raises MempersistError: VALIDATION if the file holds no key.
    """
    if not directory.backup_key.exists():
        write_private(directory.backup_key, secrets.token_hex(_BACKUP_KEY_BYTES) + "\n")
    return read_backup_key(directory.backup_key)


def read_backup_key(path: Path) -> bytes:
    """:raises MempersistError: VALIDATION unless the file holds 32 bytes or more in hexadecimal."""
    try:
        key = bytes.fromhex(path.read_text(encoding="utf-8").strip())
    except (OSError, ValueError):
        key = b""
    if len(key) < _BACKUP_KEY_BYTES:
        message = f"{path} holds no backup key: {_BACKUP_KEY_BYTES} bytes or more in hexadecimal"
        raise MempersistError(Code.VALIDATION, message)
    return key


def cursor_keys(directory: DataDirectory) -> tuple[tuple[str, bytes], ...]:
    """The keys of the file ``cursor-keys``, which is made (0600) with one key on first use.

    :raises MempersistError: VALIDATION for a file that holds no keys or something else.
    """
    if not directory.cursor_keys.exists():
        key_id, secret = secrets.token_hex(_KEY_ID_BYTES), secrets.token_hex(sealing.LEAST_SECRET_BYTES)
        write_private(directory.cursor_keys, f"{key_id}:{secret}\n")
    try:
        keys = sealing.parse_keys(directory.cursor_keys.read_text(encoding="utf-8"))
    except (MempersistError, ValueError):
        keys = ()
    if not keys:
        raise MempersistError(
            Code.VALIDATION, f"{directory.cursor_keys} holds no valid keys; delete it, and a new one is made"
        )
    return keys


class DirectoryLock:
    """The lock of a data directory, held by every program that uses it. The system lets go of it when a program dies.

    Programs that read and write share it; one that must be alone takes it for itself.
    """

    def __init__(self, directory: DataDirectory) -> None:
        self._root = directory.root
        self._handle = os.open(directory.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def close(self) -> None:
        os.close(self._handle)

    def alone(self) -> bool:
        """Take it for this program alone, if no other holds it."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def require_alone(self) -> None:
        """:raises MempersistError: RETRYABLE_INFRASTRUCTURE if another program uses the directory."""
        if not self.alone():
            message = f"another mempersist program uses {self._root}, and this needs it for itself; stop that one first"
            raise MempersistError(Code.RETRYABLE_INFRASTRUCTURE, message)

    def share(self, wait_seconds: float = _SHARE_SECONDS) -> None:
        """Hold it together with others, after waiting for one that is just starting.

        :raises MempersistError: RETRYABLE_INFRASTRUCTURE if a program keeps it for itself, as a restore does.
        """
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    message = f"{self._root} is being restored by another mempersist program; wait until it is done"
                    raise MempersistError(Code.RETRYABLE_INFRASTRUCTURE, message) from None
                time.sleep(_LOOK_SECONDS)
            else:
                return


def write_private(path: Path, text: str) -> None:
    """Write a small file for its owner's eyes only: whole or not at all, and the first writer of two wins."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            return
    finally:
        temporary.unlink()


def _refused(path: Path, problem: str) -> MempersistError:
    return MempersistError(Code.VALIDATION, f"data directory {path} {problem}")
