"""Having a state machine look for faults, and replaying a search that has found them.

``STEADY_QUEUE_TEST_RUNS=1000`` has a thousand longer runs tried on each database, other ones each
time, and the shortest one told that fails.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import count

import hypothesis
import pytest
from django.db import connections
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from steady_queue_core.dialects import KeyTaken

from ..sizes import ASKED, sized
from .machine import QueueMachine

#: Seconds until a search is given up.
PATIENCE = 3600 if ASKED else 240

#: Time is short: what fails is told as it was found.
FEW = settings(
    max_examples=16,
    stateful_step_count=40,
    derandomize=True,
    phases=[Phase.generate],
    database=None,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
MANY = settings(FEW, max_examples=ASKED or 1, stateful_step_count=80, derandomize=False,
                phases=[Phase.generate, Phase.shrink])  # fmt: skip
#: The first run of every seed is the simplest there is.
SEEDED = settings(FEW, max_examples=2, derandomize=False)

#: A run that fails is replayed, and is another one if it goes by the clock.
FOUND = AssertionError, Flaky, KeyTaken


def search(
    machine: type[QueueMachine], using: str, config: pytest.Config, *, seeds: Collection[int],
    usual: settings = FEW,
) -> None:  # fmt: skip
    """Look for faults; in a run for a merge, where the planted ones are found."""
    if ASKED:
        run(machine, using, MANY)
    elif sized(config, merge=False, whole=True):
        run(machine, using, usual)
    else:
        # On servers, which are known to be slower alone, those that find the most.
        most = sorted(set(seeds), key=[*seeds].count, reverse=True)
        for seed in most if using == "default" else most[:2]:
            replay(machine, using, seed)


def replay(machine: type[QueueMachine], using: str, seed: int) -> None:
    run(machine, using, SEEDED, seed)


def finds(machine: type[QueueMachine], seed: int) -> bool:
    """Say whether the runs of a seed find the fault that there is."""
    try:
        replay(machine, "default", seed)
    except FOUND:
        return True
    return False


def another_seed(machine: type[QueueMachine]) -> str:
    """Tell a seed that finds the fault that there is."""
    return f"seed {next(seed for seed in count(1) if finds(machine, seed))} finds it"


def run(machine: type[QueueMachine], using: str, how: settings, seed: int | None = None) -> None:
    of_run = {"using": using, "is_replayed": seed is not None}
    machine = type("Machine", (machine,), of_run)
    if seed is not None:
        machine = hypothesis.seed(seed)(machine)
    with unsynced(using):
        run_state_machine_as_test(machine, settings=how)


@contextmanager
def unsynced(using: str) -> Iterator[None]:
    """Have SQLite wait for no disk: the servers of the tests do not either."""
    if connections[using].vendor != "sqlite":
        yield
        return
    with connections[using].cursor() as cursor:
        cursor.execute("PRAGMA synchronous")
        [usual] = cursor.fetchone()
        cursor.execute("PRAGMA synchronous = OFF")
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA synchronous = {usual}")
