"""Sources of a bundle, small and made by hand, with a wheel that needs no registry."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from mempersist_ops.bundle import Sources

LOCKED = Path("there-is-no-cache-to-look-into")
_FILES = {
    "entry.py": "from workers import WorkerEntrypoint\n\nfrom bindings import host\n",
    "bindings/__init__.py": "",
    "bindings/host.py": "import js\n\nfrom mempersist import core\n",
    "mempersist/__init__.py": "",
    "mempersist/core.py": "import json\n",
    "mempersist/page.html": "<!doctype html>\n",
    "migrations/0001_first.sql": "CREATE TABLE t (a);\n",
    "migrations/README.md": "not shipped\n",
}


def sources(root: Path, *, wheel: Path | None = None, **changed: str) -> Sources:
    """Sources under ``root``. ``changed`` files replace or join the usual ones: ``mempersist__core_py`` is
    ``mempersist/core.py``."""
    named = {name.replace("__", "/").replace("_py", ".py"): text for name, text in changed.items()}
    for name, text in {**_FILES, **named}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    lock = root / "requirements.lock"
    lock.write_text(
        "" if wheel is None else f"sdk==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
    )
    return Sources(root / "entry.py", (root / "bindings", root / "mempersist"), root / "migrations", lock)


def wheel(directory: Path, files: dict[str, bytes]) -> Path:
    """A wheel of the distribution ``sdk`` 1.0."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "sdk-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data)
    return path


def tree(root: Path) -> list[Path]:
    """All files under ``root``."""
    return sorted(path for path in root.rglob("*") if path.is_file())
