"""Reads the runs that the tasks themselves recorded, independently of the queue's tables."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Run(NamedTuple):
    """One run of a task, from when to when by the system's clock."""

    name: str
    number: int
    began: float
    ended: float
    #: Whether it got to its end without an exception.
    succeeded: bool


def read(path: Path) -> list[Run]:
    """Return the runs in the order of their ends."""
    if not path.exists():
        return []
    return [Run(*json.loads(line)) for line in path.read_text().splitlines()]


def most_at_once(runs: Iterable[Run]) -> int:
    """Return how many of ``runs`` were under way at the same moment, at most."""
    changes = [change for run in runs for change in ((run.began, 1), (run.ended, -1))]
    count = most = 0
    for _, change in sorted(changes):
        count += change
        most = max(most, count)
    return most
