"""Everything the local host keeps lies under one directory, for its owner alone."""

from __future__ import annotations

import json
import multiprocessing
import stat
import threading
from contextlib import closing
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from mempersist.errors import Code, MempersistError
from mempersist_ops.host import datadir


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_option_beats_the_variable_which_beats_the_xdg_data_home(tmp_path: Path) -> None:
    environ = {"MEMPERSIST_DATA_DIR": str(tmp_path / "variable"), "XDG_DATA_HOME": str(tmp_path / "xdg")}
    assert datadir.location(tmp_path / "option", environ) == tmp_path / "option"
    assert datadir.location(None, environ) == tmp_path / "variable"
    del environ["MEMPERSIST_DATA_DIR"]
    assert datadir.location(None, environ) == tmp_path / "xdg" / "mempersist"
    assert datadir.location(None, {}) == Path.home() / ".local" / "share" / "mempersist"


def test_a_new_directory_is_for_its_owner_alone(tmp_path: Path) -> None:
    directory = datadir.create(tmp_path / "deep" / "archive")
    assert mode(directory.root) == 0o700
    assert mode(directory.marker) == 0o600
    assert datadir.existing(directory.root) == directory


def test_an_empty_directory_that_stood_there_is_closed_to_others_too(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    datadir.create(tmp_path)
    assert mode(tmp_path) == 0o700


def test_a_directory_with_other_files_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "thesis.odt").write_bytes(b"years of work")
    tmp_path.chmod(0o755)
    with pytest.raises(MempersistError, match="holds other files; name an empty directory"):
        datadir.create(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.odt"]
    assert mode(tmp_path) == 0o755


def test_a_directory_of_a_newer_layout_is_refused(tmp_path: Path) -> None:
    datadir.create(tmp_path).marker.write_text(json.dumps({"format": "mempersist.data-directory.v9"}))
    with pytest.raises(MempersistError, match="a newer mempersist made it"):
        datadir.create(tmp_path)


def test_reading_commands_do_not_make_a_directory(tmp_path: Path) -> None:
    with pytest.raises(MempersistError, match="no archive at") as caught:
        datadir.existing(tmp_path / "nowhere")
    assert caught.value.code is Code.NOT_FOUND
    assert not (tmp_path / "nowhere").exists()


def test_the_token_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    directory = datadir.create(tmp_path)
    token = datadir.api_token(directory, {})
    assert len(token) >= 43
    assert datadir.api_token(directory, {}) == token
    assert mode(directory.token) == 0o600


def test_the_token_of_the_environment_is_used_and_not_written_down(tmp_path: Path) -> None:
    directory = datadir.create(tmp_path)
    assert datadir.api_token(directory, {"MEMORY_API_TOKEN": "from-the-environment"}) == "from-the-environment"
    assert not directory.token.exists()


def test_an_empty_token_file_is_an_error_not_a_password(tmp_path: Path) -> None:
    directory = datadir.create(tmp_path)
    directory.token.write_text("\n")
    with pytest.raises(MempersistError, match="delete it, and a new token is made"):
        datadir.api_token(directory, {})


def test_of_two_first_starts_one_writes_the_token_and_the_other_reads_it(tmp_path: Path) -> None:
    directory = datadir.create(tmp_path)
    datadir.write_private(directory.token, "first\n")
    datadir.write_private(directory.token, "second\n")
    assert datadir.api_token(directory, {}) == "first"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["mempersist.json", "token"]


def _hold(root: Path, held: Event, release: Event) -> None:
    with closing(datadir.DirectoryLock(datadir.DataDirectory(root))) as lock:
        lock.share()
        held.set()
        release.wait(30)


def test_a_restore_needs_the_directory_for_itself_while_others_share_it(tmp_path: Path) -> None:
    directory = datadir.create(tmp_path)
    spawning = multiprocessing.get_context("spawn")
    held, release = spawning.Event(), spawning.Event()
    other = spawning.Process(target=_hold, args=(tmp_path, held, release))
    other.start()
    with closing(datadir.DirectoryLock(directory)) as lock:
        try:
            assert held.wait(30)
            with pytest.raises(MempersistError, match="this needs it for itself; stop that one first"):
                lock.require_alone()
            lock.share()
        finally:
            release.set()
            other.join(30)
        assert lock.alone()


def test_whoever_comes_while_a_restore_runs_is_told_so(tmp_path: Path) -> None:
    directory = datadir.create(tmp_path)
    with closing(datadir.DirectoryLock(directory)) as restore, closing(datadir.DirectoryLock(directory)) as other:
        restore.require_alone()
        with pytest.raises(MempersistError, match="is being restored"):
            other.share(wait_seconds=0)


def test_whoever_comes_while_another_program_starts_waits_for_it(tmp_path: Path) -> None:
    directory = datadir.create(tmp_path)
    with closing(datadir.DirectoryLock(directory)) as first, closing(datadir.DirectoryLock(directory)) as second:
        assert first.alone()
        waiting = threading.Thread(target=second.share)
        waiting.start()
        first.share()
        waiting.join(30)
        assert not waiting.is_alive()
        assert not first.alone()


def test_cursor_keys_are_made_once_and_only_their_owner_can_read_them(tmp_path: Path) -> None:
    directory = datadir.create(tmp_path)
    ((key_id, secret),) = datadir.cursor_keys(directory)
    assert key_id
    assert len(secret) == 32
    assert datadir.cursor_keys(directory) == ((key_id, secret),)
    assert mode(directory.cursor_keys) == 0o600


def test_a_cursor_key_put_in_front_signs_and_the_old_one_still_verifies(tmp_path: Path) -> None:
    directory = datadir.create(tmp_path)
    (old,) = datadir.cursor_keys(directory)
    directory.cursor_keys.write_text(f"newer:{'6e' * 32}\n{directory.cursor_keys.read_text()}")
    assert datadir.cursor_keys(directory) == (("newer", b"n" * 32), old)


@pytest.mark.parametrize("content", [b"", b"\n", b"short:00", b"\xff\xfe"])
def test_a_file_without_valid_cursor_keys_is_refused_and_says_the_way_out(tmp_path: Path, content: bytes) -> None:
    directory = datadir.create(tmp_path)
    directory.cursor_keys.write_bytes(content)
    with pytest.raises(MempersistError, match="holds no valid keys; delete it"):
        datadir.cursor_keys(directory)
