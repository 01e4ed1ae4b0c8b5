"""Reads the run journal that a dead process has left."""

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
from . import system as host

#: Bytes of a slot: the job's id, the length of its outcome, the outcome.
SLOT = 1024
ID, LENGTH, DATA = 8, 8, 16
#: The slot that belongs to no job: whether the worker left in good order, and its pid.
HEADER = 16
#: The name of a journal's file.
NAME = re.compile(r"[a-z]+-[0-9a-f]{20}\.journal")
#: Larger than any journal, in bytes.
LARGEST_FILE = 64 << 20


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


class JournalSnapshot(NamedTuple):
    """What a dead process leaves: of its claims, those that it had started."""

    #: Jobs that had started and whose outcome is not known.
    running: frozenset[int] = frozenset()
    #: Jobs that ended well and whose outcome it did not come to store.
    ended: Mapping[int, Ended] = MappingProxyType({})

    @classmethod
    def read(cls, data: bytes) -> JournalSnapshot:
        """Read the memory of a process's journal."""
        running, ended = set(), {}
        for slot in range(HEADER, len(data) - SLOT + 1, SLOT):
            job_id = int.from_bytes(data[slot : slot + ID], "little")
            length = int.from_bytes(data[slot + ID : slot + ID + LENGTH], "little")
            if job_id and length:
                try:
                    ended[job_id] = Ended.read(data[slot + DATA : slot + DATA + length])
                except (ValueError, OverflowError, OSError):
                    running.add(job_id)
            elif job_id:
                running.add(job_id)
        # What a process broke off as it left in good order is no attempt.
        left_cleanly = any(data[:8])
        return cls(frozenset() if left_cleanly else frozenset(running), ended)


def left_at(path: Path | None) -> JournalSnapshot | None:
    """Return what a dead process left at ``path``; ``None``: nothing that can be believed.

    A row of the database says where to look, so what is found there may be anything.
    """
    if path is None or not NAME.fullmatch(path.name):
        return None
    try:
        flags = os.O_RDONLY
        for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
            flags |= getattr(os, name, 0)
        with open(os.open(path, flags), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or not host.owns(found):
                return None
            return JournalSnapshot.read(file.read(LARGEST_FILE))
    except (OSError, ValueError):
        return None


def forget(path: Path | None) -> None:
    """Remove the journal of a dead process, if there are any."""
    if path is not None and NAME.fullmatch(path.name):
        with suppress(OSError, ValueError):
            path.unlink()
