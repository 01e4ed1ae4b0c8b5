"""Start marks: what a worker has started and ended, in memory that outlives it.

A worker writes a job's id into a slot when it starts the job, the outcome beside it when the task
has returned, and clears the slot when the outcome is stored. When the worker is killed, the
supervisor reads the slots: jobs that were running count as interrupted, outcomes that it did not
come to store are stored, and all else that it had claimed goes back untouched. The memory is a
file, so that it also survives a supervisor that was killed.
"""

from __future__ import annotations

import mmap
import os
import re
import tempfile
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ..dialects import Ending, Outcome
from . import host

#: Bytes of a slot: the job's id, the length of its outcome, the outcome.
SLOT = 1024
ID, LENGTH, DATA = 8, 8, 16
#: The slot that belongs to no job: whether the worker left in good order, and its pid.
HEADER = 16
NAME = re.compile(r"[a-z]+-[0-9a-f]{20}")


class Ended(NamedTuple):
    """A job that ended well, as its worker noted it."""

    token: int
    started_at: datetime
    preserve: bool
    return_value: str

    @classmethod
    def read(cls, data: bytes) -> Ended:
        """Read what ``of`` made. Raises ``ValueError``."""
        token, started_at, preserve, return_value = data.decode("ascii").split(" ", 3)
        began = datetime.fromtimestamp(float(started_at), UTC)
        return cls(int(token), began, preserve == "1", return_value)

    @staticmethod
    def of(outcome: Outcome) -> bytes:
        """Return the form in which an outcome is noted: there is one for every job that runs."""
        began = outcome.last_attempted_at.timestamp() if outcome.last_attempted_at else 0.0
        preserve = 1 if outcome.preserve else 0
        return f"{outcome.token} {began:.6f} {preserve} {outcome.return_value}".encode()


class Remains(NamedTuple):
    """What a dead process leaves: of its claims, those that it had started."""

    #: Jobs that had started and whose outcome is not known.
    running: frozenset[int] = frozenset()
    #: Jobs that ended well and whose outcome it did not come to store.
    ended: Mapping[int, Ended] = MappingProxyType({})


class StartMarks:
    """Slots of jobs, shared between a worker and its supervisor."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._header = memoryview(memory)[:HEADER].cast("q")
        self._free = deque(range(HEADER, len(memory), SLOT))
        self._slots: dict[int, int] = {}

    @classmethod
    def create(cls, name: str, capacity: int) -> StartMarks:
        """Make empty slots for ``capacity`` jobs of the process ``name``."""
        size = HEADER + SLOT * capacity
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

    def belong_to(self, pid: int) -> None:
        """Note whose marks these are."""
        self._header[1] = pid

    def start(self, job_id: int) -> None:
        """Mark a job as started. Called by the thread that is about to run it."""
        slot = self._slots[job_id] = self._free.popleft()
        self._write(slot, job_id)

    def end(self, job_id: int, outcome: Outcome) -> None:
        """Note the outcome of a job, if it ended well and there is room. Called by its thread."""
        slot = self._slots.get(job_id)
        if slot is None or outcome.ending is not Ending.FINISHED:
            return
        data = Ended.of(outcome)
        if len(data) <= SLOT - DATA:
            self._memory[slot + DATA : slot + DATA + len(data)] = data
            # Last of all: a kill in between leaves no half of an outcome.
            self._write(slot + ID, len(data))

    def clear(self, job_id: int) -> None:
        """Take the mark back: the job's outcome is stored."""
        slot = self._slots.pop(job_id, None)
        if slot is not None:
            self._write(slot, 0)
            self._write(slot + ID, 0)
            self._free.append(slot)

    def leave_cleanly(self) -> None:
        """Mark that the worker ends of its own accord, in good order."""
        self._header[0] = 1

    @property
    def left_cleanly(self) -> bool:
        return bool(self._header[0])

    def remains(self) -> Remains:
        """Read the slots, of a process that is dead or gave no sign of life."""
        return _read(self._memory[:])

    def _write(self, position: int, number: int) -> None:
        self._memory[position : position + 8] = number.to_bytes(8, "little")


def left_by(name: str) -> Remains | None:
    """Return what a dead process of this host left; ``None``: it left no marks."""
    if not NAME.fullmatch(name):
        return None
    try:
        return _read(_path_of(name).read_bytes())
    except OSError:
        return None


def forget(name: str) -> None:
    """Remove the marks of a dead process, if there are any."""
    if NAME.fullmatch(name):
        with suppress(OSError):
            _path_of(name).unlink()


def sweep(older_than: float) -> None:
    """Remove marks of dead processes that nobody has asked for, for ``older_than`` (a Unix time):
    their database is gone."""
    for path in _path_of("any").parent.glob("*.marks"):
        with suppress(OSError):
            with path.open("rb") as file:
                pid = int.from_bytes(file.read(HEADER)[8:], "little")
            if path.stat().st_ctime < older_than and host.birth(pid) is None:
                path.unlink()


def _read(data: bytes) -> Remains:
    running, ended = set(), {}
    for slot in range(HEADER, len(data) - SLOT + 1, SLOT):
        job_id = int.from_bytes(data[slot : slot + ID], "little")
        length = int.from_bytes(data[slot + ID : slot + ID + LENGTH], "little")
        if job_id and length:
            try:
                ended[job_id] = Ended.read(data[slot + DATA : slot + DATA + length])
            except ValueError:
                running.add(job_id)
        elif job_id:
            running.add(job_id)
    return Remains(frozenset(running), ended)


def _path_of(name: str) -> Path:
    owner = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir()) / f"steady-queue-{owner}" / f"{name}.marks"
