"""Reads the run journal of a dead process."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ...dialects import Outcome
from . import system

#: Bytes of an entry: the job's id, the length of its outcome, the outcome.
ENTRY_SIZE = 1024
ID_SIZE, DATA_OFFSET = 8, 16
#: At its end, of an attempt with a time limit: whether it was given up, by when it has to have
#: ended (ns, monotonic clock), and the thread that runs it.
STUCK_OFFSET, END_OFFSET, THREAD_OFFSET = ENTRY_SIZE - 24, ENTRY_SIZE - 16, ENTRY_SIZE - 8
#: The longest outcome.
MOST_DATA = STUCK_OFFSET - DATA_OFFSET
#: Bytes before the first entry: whether the worker exited cleanly, and its pid.
HEADER_SIZE = 16
#: The name of a journal's file.
FILE_NAME = re.compile(r"[a-z]+-[0-9a-f]{20}\.journal")
#: Larger than any journal, in bytes.
MAX_FILE_SIZE = 64 << 20


class FinishedEntry(NamedTuple):
    """A job that succeeded, as its worker recorded it."""

    token: int
    started_at: datetime
    preserve: bool
    return_value: str

    @classmethod
    def read(cls, data: bytes) -> FinishedEntry:
        """Parse the output of ``of``. Raises ``ValueError``."""
        token, started_at, preserve, return_value = data.decode("ascii").split(" ", 3)
        began = datetime.fromtimestamp(float(started_at), UTC)
        return cls(int(token), began, preserve == "1", return_value)

    @staticmethod
    def of(outcome: Outcome) -> bytes:
        """Return an outcome in its recorded form: compact, since every job writes one."""
        began = outcome.last_attempted_at.timestamp() if outcome.last_attempted_at else 0.0
        preserve = 1 if outcome.preserve else 0
        return f"{outcome.token} {began:.6f} {preserve} {outcome.return_value}".encode()


class LimitedEntry(NamedTuple):
    """A running attempt with a time limit."""

    job_id: int
    #: By when it has to have ended, on the monotonic clock, in seconds.
    ends_at: float
    #: The id that the system gives its thread.
    thread: int


class JournalSnapshot(NamedTuple):
    """The claimed jobs that a dead process had started."""

    #: Jobs that had started and whose outcome is unknown.
    running: frozenset[int] = frozenset()
    #: Jobs that succeeded and whose outcome was not stored in the database yet.
    finished: Mapping[int, FinishedEntry] = MappingProxyType({})
    #: Jobs that had started and did not end when they were told to.
    stuck: frozenset[int] = frozenset()

    @classmethod
    def read(cls, data: bytes) -> JournalSnapshot:
        """Parse the memory of a journal."""
        running, stuck, finished = set(), set(), {}
        for entry in entries(data):
            job_id, length = number_at(data, entry), number_at(data, entry + ID_SIZE)
            if job_id and length:
                outcome = data[entry + DATA_OFFSET : entry + DATA_OFFSET + length]
                try:
                    finished[job_id] = FinishedEntry.read(outcome)
                except (ValueError, OverflowError, OSError):
                    running.add(job_id)
            elif job_id and number_at(data, entry + STUCK_OFFSET):
                stuck.add(job_id)
            elif job_id:
                running.add(job_id)
        # Jobs that a clean exit interrupted use up no attempt.
        exited_cleanly = any(data[:8])
        charged = frozenset() if exited_cleanly else frozenset(running)
        return cls(charged, finished, frozenset(stuck))


def entries(data: bytes) -> range:
    """Return where the entries of a journal begin."""
    return range(HEADER_SIZE, len(data) - ENTRY_SIZE + 1, ENTRY_SIZE)


def number_at(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 8], "little")


def limited_entries(data: bytes) -> list[LimitedEntry]:
    """Return the running attempts with a time limit, from the memory of a journal."""
    found = []
    for entry in entries(data):
        job_id, ends_at = number_at(data, entry), number_at(data, entry + END_OFFSET)
        if job_id and ends_at and not number_at(data, entry + ID_SIZE):
            thread = number_at(data, entry + THREAD_OFFSET)
            found.append(LimitedEntry(job_id, ends_at / 1e9, thread))
    return found


def read_journal(path: Path | None) -> JournalSnapshot | None:
    """Return the journal of a dead process at ``path``, or ``None`` if there is none that can be
    trusted.

    The path comes from a row of the database, so it may point to anything.
    """
    if path is None or not FILE_NAME.fullmatch(path.name):
        return None
    try:
        flags = os.O_RDONLY
        for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
            flags |= getattr(os, name, 0)
        with open(os.open(path, flags), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or not system.is_owned(found):
                return None
            return JournalSnapshot.read(file.read(MAX_FILE_SIZE))
    except (OSError, ValueError):
        return None


def remove_journal(path: Path | None) -> None:
    """Delete the journal of a dead process, if it has one."""
    if path is not None and FILE_NAME.fullmatch(path.name):
        with suppress(OSError, ValueError):
            path.unlink()
