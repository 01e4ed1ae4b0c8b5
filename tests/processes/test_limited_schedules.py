"""Schedules that run so many times, once, or not while the previous run lasts, with real processes
that are killed."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from ..servers.kinds import KINDS
from . import proc
from .conftest import MakeProject
from .harness import Project, Supervisor
from .scenarios import stop_all
from .schedules import gaps, scheduled, schedulers, seconds, slots, wait_scheduler, wait_slots
from .waiting import wait_for

on_every_database = pytest.mark.parametrize(
    "database",
    ["default", *(pytest.param(alias, marks=pytest.mark.server(alias)) for alias in KINDS)],
)

LIMITED = """
from datetime import datetime, timedelta, timezone
from pathlib import Path
from steady_queue_core import recurring, task
from steady_queue_core.retries import constant
from tests.faultapp.effects import record

SECOND = timedelta(seconds=1)
START = datetime.fromtimestamp(float(Path("start").read_text()), timezone.utc)

@task(takes_context=True, max_attempts=2, backoff=constant(0))
def tell(context):
    record("start", context)
    record("end", context)
    if context.attempt == 1:
        raise RuntimeError("once more")
    return context.intended_time.timestamp()

recurring(schedule=SECOND, key="counted", repeats=6, catch_up=timedelta(hours=1))(tell)
recurring(schedule=START + 3 * SECOND, key="once")(tell)
recurring(schedule=2 * SECOND, starts_at=START, ends_at=START + 7 * SECOND, key="bounded",
          catch_up=timedelta(hours=1))(tell)
"""


def limited(make_project: MakeProject, text: str, database: str, start: float) -> Project:
    project = scheduled(make_project, text, on=database)
    (project.folder / "start").write_text(str(start))
    return project


def wait_own_scheduler(project: Project, supervisor: Supervisor) -> int:
    """Return the pid of the scheduler of a supervisor."""

    def found() -> int:
        return next((pid for pid in schedulers(project) if pid in supervisor.children()), 0)

    return wait_for(found, 20, "its scheduler")


def told(project: Project, key: str) -> list[tuple[int, int]]:
    """Return the slot of each run, and the one that its task was told."""
    rows = project.query(
        "SELECT run_at, return_value FROM steady_queue_recurring_executions "
        "JOIN steady_queue_jobs ON steady_queue_jobs.id = job_id WHERE task_key = ? "
        "ORDER BY run_at",
        key,
    )
    return [(seconds(run_at), int(json.loads(value))) for run_at, value in rows]


@on_every_database
def test_limits_are_exact_under_two_schedulers_that_are_killed(
    make_project: MakeProject, database: str
) -> None:
    start = int(time.time()) + 8  # After the first start of a scheduler.
    project = limited(make_project, LIMITED, database, start)
    supervisors = [project.start(), project.start()]
    for supervisor in supervisors * 2:
        before = len(slots(project, "counted"))
        victim = wait_own_scheduler(project, supervisor)
        wait_slots(project, min(before + 1, 6), "counted")
        supervisor.send(signal.SIGKILL, victim)
        wait_for(lambda pid=victim: not proc.alive(pid), 10, "its death")
    wait_slots(project, 6, "counted")
    wait_slots(project, 1, "once")
    wait_slots(project, 4, "bounded")
    # Nothing follows, whoever else starts.
    project.start().wait_ready(1)
    end = max(time.time(), start + 8) + 2.5
    wait_for(lambda: time.time() > end, 30, "the time of slots that are not there")
    stop_all(project)
    assert project.start("--drain").wait_exit() == 0
    counted = slots(project, "counted")
    assert counted == list(range(counted[0], counted[0] + 6))
    assert slots(project, "once") == [start + 3]
    assert slots(project, "bounded") == [start, start + 2, start + 4, start + 6]
    assert project.count("jobs") == 6 + 1 + 4
    for key in ("counted", "once", "bounded"):
        # Each job has told in its second attempt.
        assert told(project, key) == [(slot, slot) for slot in slots(project, key)]
    assert len(project.attempts()) == 2 * project.count("jobs")


OVERLAPPING = """
from datetime import timedelta
from steady_queue_core import recurring
from tests.faultapp.tasks import work_again

recurring(schedule=timedelta(seconds=1), key="tick", args=[1.4], **{limits})(work_again)
"""


def spans(project: Project) -> Iterator[tuple[int, int, int]]:
    """Yield each job with the instants of its first start and its last end."""
    for job_id in {each.job_id for each in project.attempts()}:
        found = project.attempts_at(job_id)
        ended = [each.ended_at for each in found if each.ended_at is not None]
        assert ended, f"job {job_id} has not ended"
        yield min(each.started_at for each in found), max(ended), job_id


@on_every_database
@pytest.mark.parametrize(
    "limits",
    [
        pytest.param("dict(overlap='skip')", marks=pytest.mark.thorough),
        "dict(overlap='queue', catch_up=timedelta(hours=1), repeats=6)",
    ],
    ids=["skip", "queue"],
)
def test_no_run_overlaps_another_whoever_is_killed(
    make_project: MakeProject, database: str, limits: str
) -> None:
    project = scheduled(make_project, OVERLAPPING.replace("{limits}", limits), on=database)
    supervisors = [project.start(), project.start()]
    for supervisor in supervisors:
        supervisor.wait_ready(1)
    for kind in ("worker", "scheduler", "worker"):
        before = len(project.attempts())
        wait_for(lambda n=before: len(project.attempts()) > n, 20, "another attempt")
        pid = project.attempts()[-1].pid if kind == "worker" else wait_scheduler(project)
        owner = next(each for each in supervisors if pid in each.children())
        owner.send(signal.SIGKILL, pid)
        wait_for(lambda pid=pid: not proc.alive(pid), 10, "its death")
    jobs = 6 if "repeats" in limits else 4
    wait_for(lambda: len({each.job_id for each in project.attempts()}) >= jobs, 40, "runs")
    stop_all(project)
    assert project.start("--drain").wait_exit() == 0
    found = sorted(spans(project))
    for (_, ended, one), (started, _, other) in pairwise(found):
        assert started >= ended, f"job {other} started before job {one} had ended"
    # The killed ones were started again, rather than left out.
    assert len(project.attempts()) > len(found)
    if "repeats" in limits:
        assert len(found) == 6
        assert gaps(slots(project)) == []
    for supervisor in supervisors:
        assert "Traceback" not in supervisor.errors()
