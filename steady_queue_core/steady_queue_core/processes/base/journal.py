"""Run journal: what a worker has started and ended, in memory that outlives it.

A worker writes a job's id into a slot when it starts the job, the outcome beside it when the task
has returned, and clears the slot when the outcome is stored. When the worker is killed, the
supervisor reads the slots (``remains``): jobs that were running count as interrupted, outcomes that
it did not come to store are stored, and all else that it had claimed goes back untouched. The
memory is a file, so that it also survives a supervisor that was killed.
"""

from __future__ import annotations

import mmap
import os
import stat
import tempfile
from collections import deque
from contextlib import suppress
from pathlib import Path

from ...dialects import Ending, Outcome
from . import journal_reader as remains
from . import system as host
from .journal_reader import DATA, HEADER, ID, SLOT, Ended, JournalSnapshot


class RunJournal:
    """Slots of jobs, shared between a worker and its supervisor."""

    def __init__(self, memory: mmap.mmap, path: Path | None = None) -> None:
        #: Where the next supervisor finds them.
        self.path = path
        self._memory = memory
        self._header = memoryview(memory)[:HEADER].cast("q")
        self._free = deque(range(HEADER, len(memory), SLOT))
        #: By job and token: a database that was restored gives out the ids of jobs once more.
        self._slots: dict[tuple[int, int], int] = {}

    @classmethod
    def create(cls, name: str, capacity: int, folder: Path | None) -> RunJournal:
        """Make empty slots for ``capacity`` jobs of the process ``name``."""
        size = HEADER + SLOT * capacity
        if folder is not None and capacity:
            path = folder / f"{name}.journal"
            try:
                return cls(_map_new_file(path, size), path)
            except OSError:
                remains.forget(path)
        # No place for a file: shared memory serves all but a supervisor's own death.
        return cls(mmap.mmap(-1, size))

    def belong_to(self, pid: int) -> None:
        """Note whose journal this is."""
        self._header[1] = pid

    def start(self, job_id: int, token: int) -> None:
        """Mark a claimed job as started. Called by the thread that is about to run it."""
        slot = self._slots[job_id, token] = self._free.popleft()
        self._write(slot, job_id)

    def end(self, outcome: Outcome) -> None:
        """Note the outcome of a job, if it ended well and there is room. Called by its thread."""
        slot = self._slots.get((outcome.job_id, outcome.token))
        if slot is None or outcome.ending is not Ending.FINISHED:
            return
        data = Ended.of(outcome)
        if len(data) <= SLOT - DATA:
            self._memory[slot + DATA : slot + DATA + len(data)] = data
            # Last of all: a kill in between leaves no half of an outcome.
            self._write(slot + ID, len(data))

    def clear(self, job_id: int, token: int) -> None:
        """Take the mark back: the job's outcome is stored."""
        slot = self._slots.pop((job_id, token), None)
        if slot is not None:
            self._write(slot, 0)
            self._write(slot + ID, 0)
            self._free.append(slot)

    def leave_cleanly(self) -> None:
        """Mark that the worker ends in good order: what it breaks off is no attempt."""
        self._header[0] = 1

    @property
    def left_cleanly(self) -> bool:
        return bool(self._header[0])

    def remains(self) -> JournalSnapshot:
        """Read the slots, of a process that is dead or gave no sign of life."""
        return JournalSnapshot.read(self._memory[:])

    def _write(self, position: int, number: int) -> None:
        self._memory[position : position + 8] = number.to_bytes(8, "little")


def folder_for(configured: Path | None) -> Path | None:
    """Return the folder for the journals, made if need be; ``None``: there is no safe one.

    By default one of the user's own, where the system keeps temporary files.
    """
    try:
        folder = configured or Path(tempfile.gettempdir()) / f"steady-queue-{host.user_id()}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat(follow_symlinks=configured is not None)
    except OSError:
        return None
    # Anybody may have made a folder of that name before us, to put files of theirs there.
    safe = host.owns(found) and host.is_private(found)
    return folder if stat.S_ISDIR(found.st_mode) and safe else None


def sweep(folder: Path | None, older_than: float) -> None:
    """Remove journals of dead processes that nobody has read since ``older_than`` (a Unix time):
    their database is gone."""
    if folder is None or host.identity() is None:
        return
    for path in folder.glob("*.journal"):
        with suppress(OSError):
            with path.open("rb") as file:
                pid = int.from_bytes(file.read(HEADER)[8:], "little")
            if path.stat().st_ctime < older_than and host.has_ended(pid):
                remains.forget(path)


def _map_new_file(path: Path, size: int) -> mmap.mmap:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        if hasattr(os, "posix_fallocate"):
            # Without its blocks, a write to the memory of a full file system kills the writer.
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.ftruncate(descriptor, size)
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)
