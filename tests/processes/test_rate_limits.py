"""Rate limits in real processes, some of which are killed: by the log of what has started when."""

from __future__ import annotations

import time

import pytest

from .conftest import EVERYWHERE, MakeProject
from .harness import SCALE, Project
from .scenarios import durations, queue, stop_all
from .test_delivery import Troubles

MODULE = ["tests.faultapp.rates"]
#: Those of ``rates.work``.
TO, BURST, PER = 100, 20, 1_000_000_000
#: ``make soak`` has 5,000.
JOBS = round(600 + 1100 * (SCALE - 1))


def starts_of(project: Project) -> list[int]:
    return [attempt.started_at for attempt in project.attempts()]


def fullest(starts: list[int], per: int = PER) -> int:
    """Return the most starts in any window, whose ends are part of it."""
    first = most = 0
    for last, instant in enumerate(starts):
        while instant - starts[first] > per:
            first += 1
        most = max(most, last - first + 1)
    return most


@pytest.mark.slow
@pytest.mark.parametrize("where", EVERYWHERE)
def test_no_second_has_more_starts_than_it_may(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    settings = queue(processes=4, threads=3, task_modules=MODULE)
    project = make_project(settings, **where)
    project.enqueue("rates:work", *durations(JOBS, 0.02))
    supervisors = [project.start() for _ in range(2)]
    for supervisor in supervisors:
        supervisor.wait_ready(4)
    troubles = Troubles(project, *supervisors, seed=11, pause=1.0)
    troubles.make_until_done(60 + JOBS / 20)
    stop_all(project)
    starts = starts_of(project)
    seconds = (starts[-1] - starts[0]) / 1e9
    claims = [row.token >> 32 for row in project.snapshot().jobs.values()]
    print(
        f"\n{JOBS} jobs, {sum(claims) / JOBS:.1f} claims each, "
        f"{len(starts)} starts, {troubles.killed} kills, {fullest(starts)} in the "
        f"fullest second, {len(starts) / seconds:.1f} per second"
    )
    assert fullest(starts) <= TO + BURST
