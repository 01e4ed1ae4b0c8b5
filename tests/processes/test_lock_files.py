"""Files that processes lock: theirs alone, and nothing that others have put in their place."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db.backends.sqlite3.base import DatabaseWrapper

from steady_queue_core.processes.base.journal_reader import ENTRY_SIZE, HEADER_SIZE, JournalSnapshot
from steady_queue_core.processes.base.thread_interrupt import TaskInterrupted
from steady_queue_core.processes.supervisor.pidfile import Pidfile, PidfileError
from steady_queue_sqlite.lock_file import LockFile, lock_file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def symlink(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("precious")
    path.symlink_to(other)


def dangling_symlink(path: Path) -> None:
    path.symlink_to(path.with_name("other"))


def hard_link(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("precious")
    other.chmod(0o600)
    os.link(other, path)


PLACES = [fifo, folder, symlink, dangling_symlink, hard_link]


@pytest.mark.parametrize("put", PLACES, ids=lambda put: put.__name__)
def test_a_pidfile_is_nothing_else(put: Callable[[Path], None], tmp_path: Path) -> None:
    path, other = tmp_path / "supervisor.pid", tmp_path / "other"
    put(path)
    before = other.read_text() if other.exists() else None
    with pytest.raises(PidfileError, match=f"The pidfile {path} cannot be used: "):
        Pidfile(path).acquire()
    assert (other.read_text() if other.exists() else None) == before
    assert path.exists() or path.is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_pidfile_of_another_user_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.pid"
    path.write_text("7\n")
    os.chown(path, 12345, 12345)
    with pytest.raises(PidfileError, match="belongs to the user with the id 12345"):
        Pidfile(path).acquire()
    assert path.read_text() == "7\n"


def test_nobody_else_can_open_a_pidfile_to_lock_it(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.pid"
    with Pidfile(path):
        assert mode(path) == 0o600
        with pytest.raises(PidfileError, match=rf"already running \(pid {os.getpid()}\)"):
            Pidfile(path).acquire()
    assert not path.exists()
    path.write_text("left behind by another version")
    path.chmod(0o644)
    with Pidfile(path):
        assert mode(path) == 0o600
        assert path.read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("put", PLACES, ids=lambda put: put.__name__)
def test_a_database_is_not_locked_by_something_else(
    put: Callable[[Path], None], tmp_path: Path
) -> None:
    database, other = tmp_path / "db.sqlite3", tmp_path / "other"
    database.touch()
    put(tmp_path / "db.sqlite3-queue.lock")
    before = mode(other) if other.exists() else None
    with pytest.raises(OSError, match=r"not a regular file|symbolic links|[Dd]irectory"):
        LockFile(str(database))
    assert (mode(other) if other.exists() else None) == before


@pytest.mark.parametrize(
    ("database_mode", "lock_mode"),
    [(0o600, 0o600), (0o644, 0o600), (0o660, 0o660), (0o664, 0o660), (0o666, 0o666)],
)
def test_who_may_write_a_database_may_lock_it(
    database_mode: int, lock_mode: int, tmp_path: Path
) -> None:
    database = tmp_path / "db.sqlite3"
    database.touch()
    database.chmod(database_mode)
    mask = os.umask(0o077)
    try:
        lock = LockFile(str(database))
    finally:
        os.umask(mask)
    assert mode(tmp_path / "db.sqlite3-queue.lock") == lock_mode
    assert lock.acquire(0.0)
    lock.release()
    lock.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take on another user's id")
def test_several_users_share_a_database_by_their_group() -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)  # Other than those of pytest.
        _share_a_database(Path(name))


def _share_a_database(folder: Path) -> None:
    database, path = folder / "db.sqlite3", folder / "db.sqlite3-queue.lock"
    database.touch()
    os.chown(database, 1001, 2000)
    database.chmod(0o660)
    LockFile(str(database)).close()
    assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (1001, 2000, 0o660)
    child = os.fork()
    if child == 0:  # Another user, of the same group.
        try:
            os.setgroups([])
            os.setegid(2000)
            os.seteuid(1002)
            lock = LockFile(str(database))
            taken = lock.acquire(0.0)
            os._exit(0 if taken else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("instant", ["inf", "nan", "1e300", "-1e18", "x", ""])
def test_marks_with_an_impossible_instant_count_as_running(instant: str) -> None:
    outcome = f"1 {instant} 1 null".encode()
    slot = (7).to_bytes(8, "little") + len(outcome).to_bytes(8, "little") + outcome
    found = JournalSnapshot.read(bytes(HEADER_SIZE) + slot.ljust(ENTRY_SIZE, b"\0"))
    assert found == JournalSnapshot(frozenset({7}), {})


@pytest.mark.parametrize("got", [True, False])
def test_a_task_that_is_interrupted_just_then_does_not_keep_the_lock_of_a_database(
    got: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "db.sqlite3"
    database.touch()
    acquire = LockFile.acquire

    def interrupted(self: LockFile, timeout: float) -> bool:
        assert acquire(self, timeout)
        self.held = got  # The system call has returned; what follows may be too late.
        raise TaskInterrupted

    connection = DatabaseWrapper({"NAME": str(database)})
    with monkeypatch.context() as patched:
        patched.setattr(LockFile, "acquire", interrupted)
        with pytest.raises(TaskInterrupted), lock_file(connection):
            raise AssertionError("the lock was acquired")
    assert LockFile(str(database)).acquire(0.0)
