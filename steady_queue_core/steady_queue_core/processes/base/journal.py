"""Run journal: the jobs that a worker has started and finished, in memory that outlives it.

A worker writes a job's id into an entry when it starts the job, the outcome beside it when the task
has returned, and clears the entry when the outcome is stored in the database. When the worker is
killed, the supervisor reads the entries (``journal_reader``): running jobs count as interrupted,
unsaved outcomes are stored, and all other claimed jobs go back untouched. The memory is a file, so
that it also survives a supervisor that was killed.
"""

from __future__ import annotations

import mmap
import os
import stat
import tempfile
import threading
from collections import deque
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from ...dialects import Ending, Outcome
from ...logging import about, get_logger
from . import system
from .journal_reader import (
    DATA_OFFSET,
    END_OFFSET,
    ENTRY_SIZE,
    HEADER_SIZE,
    ID_SIZE,
    MOST_DATA,
    STUCK_OFFSET,
    THREAD_OFFSET,
    FinishedEntry,
    JournalSnapshot,
    LimitedEntry,
    entries,
    limited_entries,
    number_at,
    remove_journal,
)

logger = get_logger("steady_queue.supervisor")


class RunJournal:
    """Entries of started jobs, shared between a worker and its supervisor."""

    def __init__(
        self, memory: mmap.mmap, path: Path | None = None, descriptor: int | None = None
    ) -> None:
        #: The file in which the next supervisor finds the entries.
        self.path = path
        #: What stands for the memory when the file has no name any more, or never had one.
        self._descriptor = descriptor
        self._memory = memory
        self._header = memoryview(memory)[:HEADER_SIZE].cast("q")
        self._free = deque(range(HEADER_SIZE, len(memory), ENTRY_SIZE))
        #: By job and token: a restored database hands out the same job ids again.
        self._entries: dict[tuple[int, int], int] = {}
        #: Entries of attempts with a time limit, or that were given up.
        self._limited: set[int] = set()

    @classmethod
    def create(cls, name: str, capacity: int, folder: Path | None) -> RunJournal:
        """Create an empty journal for ``capacity`` jobs of the process ``name``."""
        size = HEADER_SIZE + ENTRY_SIZE * capacity
        if folder is not None and capacity:
            path = folder / f"{name}.journal"
            try:
                memory, descriptor = _map_new_file(path, size)
                return cls(memory, path, descriptor)
            except OSError:
                remove_journal(path)
        # Without a file, shared memory covers everything but the supervisor's own death.
        return cls(*_map_nameless(size))

    @classmethod
    def adopt(cls, descriptor: int, path: Path | None) -> RunJournal:
        """Return the journal of a living process, and take over its ``descriptor``. Raises
        ``OSError`` and ``ValueError``."""
        return cls(mmap.mmap(descriptor, os.fstat(descriptor).st_size), path, descriptor)

    def open(self) -> int:
        """Return a new descriptor of the memory, for ``adopt``. Raises ``OSError``."""
        if self._descriptor is None:
            raise OSError("the memory of a run journal has no descriptor")
        return os.dup(self._descriptor)

    def close(self) -> None:
        """Release the descriptor. The memory stays."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def discard(self) -> None:
        """Release the descriptor and delete the file: nobody is going to write it."""
        self.close()
        remove_journal(self.path)

    def set_owner(self, pid: int) -> None:
        """Record the pid of the process that writes the journal."""
        self._header[1] = pid

    def start(self, job_id: int, token: int, ends_at: float | None = None) -> None:
        """Record that a claimed job starts. Called by the thread that is about to run it.

        ``ends_at``: by when it has to have ended, on the monotonic clock, if it has a time limit.
        """
        entry = self._entries[job_id, token] = self._free.popleft()
        if ends_at is not None:
            self._limited.add(entry)
            self._write(entry + THREAD_OFFSET, threading.get_native_id())
            self._write(entry + END_OFFSET, max(1, int(ends_at * 1e9)))
        self._write(entry, job_id)

    def end(self, outcome: Outcome) -> None:
        """Record the outcome of a job that succeeded, if it fits. Called by the job's thread."""
        entry = self._entries.get((outcome.job_id, outcome.token))
        if entry is None or outcome.ending is not Ending.FINISHED:
            return
        if outcome.sequel is not None and not outcome.sequel.is_implied:
            return  # Only this process knows what else has to happen.
        data = FinishedEntry.of(outcome)
        if len(data) <= MOST_DATA:
            self._memory[entry + DATA_OFFSET : entry + DATA_OFFSET + len(data)] = data
            # The length comes last, so that a kill in between leaves no half of an outcome.
            self._write(entry + ID_SIZE, len(data))

    def clear(self, job_id: int, token: int) -> None:
        """Clear the entry of a job whose outcome is stored in the database."""
        entry = self._entries.pop((job_id, token), None)
        if entry is not None:
            self._write(entry, 0)
            self._write(entry + ID_SIZE, 0)
            if entry in self._limited:
                self._limited.discard(entry)
                self._write(entry + END_OFFSET, 0)
                self._write(entry + STUCK_OFFSET, 0)
            self._free.append(entry)

    def mark_stuck(self, job_id: int, token: int) -> None:
        """Record that a job did not end when it was told to: it is charged for that, whatever
        becomes of the worker."""
        entry = self._entries.get((job_id, token))
        if entry is not None:
            self._limited.add(entry)
            self._write(entry + STUCK_OFFSET, 1)

    def mark_all_stuck(self, jobs: Collection[int]) -> None:
        """Record the same of several jobs, of a process that is dead."""
        data = self._memory[:]
        for entry in entries(data):
            if number_at(data, entry) in jobs:
                self._write(entry + STUCK_OFFSET, 1)

    @property
    def limited(self) -> list[LimitedEntry]:
        """The running attempts with a time limit, as another process sees them."""
        return limited_entries(self._memory[:])

    def mark_clean_exit(self) -> None:
        """Record that the worker exits cleanly: the jobs that it interrupts lose no attempt."""
        self._header[0] = 1

    @property
    def exited_cleanly(self) -> bool:
        return bool(self._header[0])

    def snapshot(self) -> JournalSnapshot:
        """Return the entries of a process that is dead or silent."""
        return JournalSnapshot.read(self._memory[:])

    def _write(self, position: int, number: int) -> None:
        self._memory[position : position + 8] = number.to_bytes(8, "little")


def folder_for(configured: Path | None) -> Path | None:
    """Return the folder of the journals, creating it if need be, or ``None`` if it is not safe.

    By default it is in the folder that systemd has made for what outlives the service, or is one of
    the user's own where the system keeps temporary files.
    """
    try:
        folder = configured or _given_folder() or _temporary_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat(follow_symlinks=configured is not None)
    except OSError:
        return None
    # Another user may have created a folder of that name first, to plant files in it.
    safe = system.is_owned(found) and system.is_private(found)
    return folder if stat.S_ISDIR(found.st_mode) and safe else None


def _given_folder() -> Path | None:
    """Return the folder in the first ``StateDirectory`` of the unit, if there is one."""
    given = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    return Path(given) / "steady-queue-journals" if given.startswith("/") else None


def _temporary_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"steady-queue-{system.user_id()}"


def prepare(configured: Path | None, older_than: float) -> None:
    """Tidy the folder of the journals, or warn that there is none; see ``sweep``."""
    folder = folder_for(configured)
    if folder is None:
        logger.warning(
            "Run journals have no files: their folder cannot be made, or is not private. If the "
            "supervisor is killed together with its workers, each job that these have claimed "
            "counts as started. Name a folder of this user's own in "
            "STEADY_QUEUE['state_directory'].",
            extra=about("supervisor.without_journals"),
        )
    sweep(folder, older_than)


def sweep(folder: Path | None, older_than: float) -> None:
    """Delete journals of dead processes that are unread since ``older_than`` (a Unix time): their
    database is gone."""
    if folder is None or system.host_id() is None:
        return
    for path in folder.glob("*.journal"):
        with suppress(OSError):
            with path.open("rb") as file:
                pid = int.from_bytes(file.read(HEADER_SIZE)[8:], "little")
            if path.stat().st_ctime < older_than and system.has_ended(pid):
                remove_journal(path)


def _map_nameless(size: int) -> tuple[mmap.mmap, None, int | None]:
    if not hasattr(os, "memfd_create"):
        return mmap.mmap(-1, size), None, None
    descriptor = os.memfd_create("steady-queue-journal")
    try:
        os.ftruncate(descriptor, size)
        return mmap.mmap(descriptor, size), None, descriptor
    except BaseException:
        os.close(descriptor)
        raise


def _map_new_file(path: Path, size: int) -> tuple[mmap.mmap, int]:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        if hasattr(os, "posix_fallocate"):
            # With blocks missing, writing to the memory on a full file system raises SIGBUS.
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.ftruncate(descriptor, size)
        return mmap.mmap(descriptor, size), descriptor
    except BaseException:
        os.close(descriptor)
        raise
