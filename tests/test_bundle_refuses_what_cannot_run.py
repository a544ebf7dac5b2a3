"""What could not be uploaded, or would not run on Cloudflare, is refused with the module's name and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from mempersist_ops import bundle
from mempersist_ops.bundle import BundleError, Module, refuse
from tests.rigs.bundles import LOCKED, sources, wheel

FILES = {
    "sdk/__init__.py": b"",
    "sdk/tool.pyc": b"compiled",
    "sdk_patch.pth": b"import sdk\n",
    "sdk-1.0.dist-info/METADATA": b"Name: sdk\n",
    "sdk-1.0.dist-info/licenses/LICENSE": b"MIT",
    "sdk-1.0.dist-info/RECORD": b"",
    "sdk-1.0.dist-info/WHEEL": b"",
}


def build(root: Path, **changed: str) -> bundle.Bundle:
    return bundle.build(sources(root, wheel=None, **changed), LOCKED)


def test_what_can_run_is_not_refused(tmp_path: Path) -> None:
    assert build(tmp_path).size > 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"mempersist__core_py": "import js"}, "mempersist/core.py: imports js; only entry.py and bindings/"),
        ({"mempersist__core_py": "def f():\n    from pyodide import ffi"}, "mempersist/core.py: imports pyodide"),
        ({"mempersist__core_py": "import httpx"}, "imports httpx, which is not in the bundle; vendor it"),
        ({"mempersist__core_py": "import subprocess"}, "imports subprocess, which is of no use"),
        ({"mempersist__core_py": "import os, sqlite3 as s"}, "imports sqlite3, which is of no use"),
        ({"mempersist__core_py": "import cgi"}, "imports cgi, which is of no use"),
        ({"mempersist__core_py": "from . import other"}, "line 1: write the import in full"),
        ({"mempersist__core_py": "def f(:\n"}, "mempersist/core.py line 1: is not Python"),
        ({"mempersist__core_py": "x = 1\nprint 'x'"}, "mempersist/core.py line 2: is not Python"),
        ({"mempersist__core_py": "x = 1\nreturn x"}, "mempersist/core.py line 2: is not Python"),
    ],
)
def test_imports_and_source_that_do_not_work_there(tmp_path: Path, changed: dict[str, str], message: str) -> None:
    with pytest.raises(BundleError) as refused:
        build(tmp_path, **changed)
    assert message in str(refused.value)


def test_source_that_is_no_utf8(tmp_path: Path) -> None:
    made = sources(tmp_path)
    (tmp_path / "mempersist" / "core.py").write_bytes(b"# \xff\n")
    with pytest.raises(BundleError, match="is not UTF-8"):
        bundle.build(made, LOCKED)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("python_modules/fast/_speedups.cpython-314-wasm32-emscripten.so", "compiled code does not run there"),
        ("python_modules/old/module.pyc", "compiled Python is of another version"),
        ("/etc/passwd", "a relative path"),
        ("mempersist/../entry2.py", "a relative path"),
        ("mempersist/naïve.py", "a relative path"),
        ("json.py", "would hide a module of the standard library"),
        ("python_modules/typing/__init__.py", "would hide a module of the standard library"),
        ("compression/__init__.py", "would hide a module of the standard library"),
        ("js.py", "would hide a module of Cloudflare's runtime"),
        ("workers/__init__.py", "would hide a module of Cloudflare's runtime"),
        ("python_modules/pyodide/__init__.py", "would hide a module of Cloudflare's runtime"),
        ("python_modules/mempersist/__init__.py", "is both our own and vendored"),
        ("python_modules/entry.py", "is both our own and vendored"),
        ("entry.py", "two modules have this name"),
    ],
)
def test_modules_that_cannot_be_uploaded(tmp_path: Path, name: str, message: str) -> None:
    made = build(tmp_path)
    with pytest.raises(BundleError, match=message):
        refuse.check([*made.modules, Module(name, "application/octet-stream", b"")])


def test_a_bundle_may_have_64_mebibytes_and_not_a_byte_more(tmp_path: Path) -> None:
    made = build(tmp_path)
    room = refuse.MAX_BYTES - made.size
    refuse.check([*made.modules, Module("mempersist/data.bin", "application/octet-stream", bytes(room))])
    with pytest.raises(BundleError, match="at most 67108864"):
        refuse.check([*made.modules, Module("mempersist/data.bin", "application/octet-stream", bytes(room + 1))])


def test_a_bundle_needs_its_main_module(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"entry\.py is missing"):
        refuse.check([module for module in build(tmp_path).modules if module.name != "entry.py"])


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    made = sources(tmp_path / "sources")
    (tmp_path / "secret.py").write_text("token = 1\n")
    (tmp_path / "sources" / "mempersist" / "link.py").symlink_to(tmp_path / "secret.py")
    with pytest.raises(BundleError, match=r"mempersist/link.py: is a symbolic link"):
        bundle.build(made, LOCKED)


def test_a_link_to_a_directory_is_not_followed(tmp_path: Path) -> None:
    made = sources(tmp_path / "sources")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "sources" / "mempersist" / "linked").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    with pytest.raises(BundleError, match=r"mempersist/linked: is a symbolic link"):
        bundle.build(made, LOCKED)


def test_a_linked_main_module_is_not_followed(tmp_path: Path) -> None:
    made = sources(tmp_path / "sources")
    made.main.rename(tmp_path / "elsewhere.py")
    made.main.symlink_to(tmp_path / "elsewhere.py")
    with pytest.raises(BundleError, match=r"entry\.py: is a symbolic link"):
        bundle.build(made, LOCKED)


class TestVendoring:
    def test_of_a_wheel_the_code_and_its_licence_are_shipped(self, tmp_path: Path) -> None:
        packed = wheel(tmp_path / "cache", FILES)
        made = bundle.build(sources(tmp_path / "sources", wheel=packed), packed.parent)
        vendored = {module.name: module.type for module in made.modules if module.name.startswith("python_modules/")}
        assert vendored == dict.fromkeys(
            [
                "python_modules/sdk-1.0.dist-info/METADATA",
                "python_modules/sdk-1.0.dist-info/licenses/LICENSE",
                "python_modules/sdk/__init__.py",
                "python_modules/sdk_patch.pth",
            ],
            "application/octet-stream",
        )

    def test_a_wheel_that_is_not_the_locked_one_is_not_taken(self, tmp_path: Path) -> None:
        packed = wheel(tmp_path / "cache", FILES)
        made = sources(tmp_path / "sources", wheel=packed)
        packed.write_bytes(packed.read_bytes() + b"\n")
        with pytest.raises(BundleError, match="could not be fetched"):
            bundle.build(made, packed.parent)

    @pytest.mark.parametrize("line", ["sdk", "sdk==1.0", "sdk>=1.0 --hash=sha256:" + "0" * 64, "--index-url https://x"])
    def test_a_lock_pins_versions_and_hashes(self, tmp_path: Path, line: str) -> None:
        made = sources(tmp_path)
        made.lock.write_text(f"# comment\n{line}\n")
        with pytest.raises(BundleError, match="line 2: write name==version"):
            bundle.build(made, tmp_path)
