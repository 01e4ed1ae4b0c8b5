"""Start marks: which jobs a worker has started, in memory that outlives it.

A worker writes a job's id into a slot when it starts the job, and clears the slot when the
outcome is stored. When it is killed, the supervisor reads the slots: jobs that had started count
as interrupted, all others that it had claimed go back untouched. The memory is a file, so that a
supervisor that was killed as well is survived by it.
"""

from __future__ import annotations

import mmap
import os
import re
import tempfile
from collections import deque
from contextlib import suppress
from pathlib import Path

SLOT = 8
NAME = re.compile(r"[a-z]+-[0-9a-f]{20}")


class StartMarks:
    """Slots of job ids, shared between a worker and its supervisor."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._view = memoryview(memory).cast("q")
        # Slot 0 says that the worker left in good order.
        self._free = deque(range(1, len(self._view)))
        self._slots: dict[int, int] = {}

    @classmethod
    def create(cls, name: str, capacity: int) -> StartMarks:
        """Make empty slots for ``capacity`` jobs of the process ``name``."""
        size = SLOT * (capacity + 1)
        path = _path_of(name)
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
            descriptor = os.open(path, flags, 0o600)
        except OSError:
            # No place for a file: shared memory serves all but a supervisor's own death.
            return cls(mmap.mmap(-1, size))
        try:
            os.ftruncate(descriptor, size)
            return cls(mmap.mmap(descriptor, size))
        finally:
            os.close(descriptor)

    def start(self, job_id: int) -> None:
        """Mark a job as started. Called by the thread that is about to run it."""
        slot = self._slots[job_id] = self._free.popleft()
        self._view[slot] = job_id

    def clear(self, job_id: int) -> None:
        """Take the mark back: the job's outcome is stored."""
        slot = self._slots.pop(job_id, None)
        if slot is not None:
            self._view[slot] = 0
            self._free.append(slot)

    def leave_cleanly(self) -> None:
        """Mark that the worker ends of its own accord, in good order."""
        self._view[0] = 1

    @property
    def left_cleanly(self) -> bool:
        return bool(self._view[0])

    @property
    def started(self) -> frozenset[int]:
        """The ids of the jobs that were started and not settled."""
        return frozenset(job_id for job_id in self._view[1:] if job_id)


def left_by(name: str) -> frozenset[int] | None:
    """Return the started jobs of a dead process of this host; ``None``: it left no marks."""
    if not NAME.fullmatch(name):
        return None
    try:
        data = _path_of(name).read_bytes()
    except OSError:
        return None
    slots = memoryview(data[: len(data) // SLOT * SLOT]).cast("q")
    return frozenset(job_id for job_id in slots[1:] if job_id)


def forget(name: str) -> None:
    """Remove the marks of a dead process, if there are any."""
    if NAME.fullmatch(name):
        with suppress(OSError):
            _path_of(name).unlink()


def _path_of(name: str) -> Path:
    owner = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir()) / f"steady-queue-{owner}" / f"{name}.marks"
