"""The effect log: what tasks have done, whatever the database says."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

VARIABLE = "STEADY_QUEUE_EFFECTS"


class Effect(NamedTuple):
    """A line: the start or the end of a job."""

    kind: str
    number: int
    job: str
    event: str
    pid: int
    #: Nanoseconds of the monotonic clock, which all processes of a machine share.
    at: int


def append(kind: str, number: int, job: str, event: str) -> None:
    """Write a line at once, which no other process can break into."""
    line = f"{kind} {number} {job} {event} {os.getpid()} {time.monotonic_ns()}\n"
    file = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def read(path: Path) -> list[Effect]:
    """Return what was written so far."""
    if not path.exists():
        return []
    lines = (line.split() for line in path.read_text().splitlines())
    return [
        Effect(kind, int(number), job, event, int(pid), int(at))
        for kind, number, job, event, pid, at in lines
    ]
