"""Which dead processes are rescued while the rows of others are locked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from typing import Any
from unittest import mock

import pytest

from steady_queue_core.models import Process
from steady_queue_core.processes.base.database import Unavailable
from steady_queue_core.processes.supervisor.blocked_rescues import BlockedRescues

#: Seconds for which each locked one is waited for.
WAIT = 4


@pytest.fixture(autouse=True)
def clock() -> Iterator[Any]:
    """A clock that moves on by a step at each look."""
    with mock.patch.object(time, "monotonic", count(1, WAIT).__next__) as clock:
        yield clock


class Round:
    """Rounds in which some processes are locked."""

    def __init__(self, *names: str, threshold: int = 300) -> None:
        self.processes = [Process(name=name) for name in names]
        self.blocked = BlockedRescues(timedelta(seconds=threshold))
        self.locked = {name for name in names if name.startswith("locked")}
        self.tried: list[str] = []

    def rescue(self, process: Process) -> None:
        self.tried.append(process.name)
        if process.name.startswith("broken"):
            raise SystemExit("enough")
        if process.name in self.locked:
            raise Unavailable(0.0, lost=False)
        self.processes.remove(process)

    def do(self) -> list[str]:
        self.tried = []
        self.blocked.rescue_each([*self.processes], self.rescue)
        return self.tried


def test_those_that_are_locked_take_turns_and_come_last() -> None:
    locked = [f"locked {number}" for number in range(6)]
    rounds = Round(*locked, "free")
    assert rounds.do() == locked[:3]
    assert rounds.do() == locked[3:]
    # Nobody waits for ever behind others.
    assert rounds.do() == ["free", *locked[:3]]
    rounds.locked.clear()
    assert rounds.do() == [*locked[3:], *locked[:3]]
    assert not rounds.blocked


def test_the_wait_is_short_beside_the_threshold() -> None:
    rounds = Round("locked 1", "locked 2", threshold=16)
    assert rounds.do() == ["locked 1"]


def test_what_is_gone_is_forgotten() -> None:
    rounds = Round("locked 1")
    rounds.do()
    assert Process(name="locked 1") in rounds.blocked
    rounds.processes.clear()
    rounds.do()
    assert not rounds.blocked


def test_one_that_cannot_be_rescued_keeps_no_other_from_it() -> None:
    rounds = Round("broken", "free", "other")
    assert rounds.do() == ["broken", "free", "other"]
    rounds.processes.append(Process(name="next"))
    assert rounds.do() == ["next", "broken"]
