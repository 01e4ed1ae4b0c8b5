"""Recurring tasks that are added, changed, disabled and removed while real schedulers run."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from ..servers.kinds import KINDS
from .conftest import MakeProject
from .harness import Project
from .scenarios import queue, stop_all, verdict
from .schedules import (
    EVERY_SECOND,
    mirrored,
    scheduled,
    schedulers,
    slots,
    take_over,
    wait_scheduler,
    wait_slots,
)
from .waiting import wait_for

DYNAMIC = {"dynamic_tasks_enabled": True, "polling_interval": 0.4}

on_every_database = pytest.mark.parametrize(
    "database",
    ["default", *(pytest.param(alias, marks=pytest.mark.server(alias)) for alias in KINDS)],
)


def recur(project: Project, act: str, key: str, **values: Any) -> Any:
    return project.client.call("recur", act=act, key=key, **values)


def known_keys(project: Project) -> list[list[str]]:
    """Return the keys that each scheduler says it has."""
    rows = project.query("SELECT metadata FROM steady_queue_processes WHERE kind = 'scheduler'")
    return [json.loads(metadata)["keys"] for (metadata,) in rows]


def wait_known(project: Project, keys: list[str], *, schedulers: int = 2) -> None:
    wait_for(lambda: known_keys(project) == [keys] * schedulers, 20, f"schedulers with {keys}")


def stay(project: Project, keys: list[str], seconds: float) -> None:
    """See to it that no slot of these tasks is enqueued for so long."""
    before, end = [slots(project, key) for key in keys], time.monotonic() + seconds
    wait_for(lambda: time.monotonic() > end, seconds + 5, "time to pass")
    assert [slots(project, key) for key in keys] == before


@on_every_database
def test_two_schedulers_follow_what_is_done_at_run_time(
    make_project: MakeProject, database: str
) -> None:
    project = scheduled(make_project, on=database, scheduler=DYNAMIC)
    supervisors = [project.start(), project.start()]
    wait_known(project, ["tick"])

    recur(project, "schedule", "new", task="work", schedule=1, args=[0.01], queue_name="a")
    wait_slots(project, 2, "new")
    wait_known(project, ["new", "tick"])
    recur(project, "change", "new", queue_name="b")
    wait_slots(project, len(slots(project, "new")) + 2, "new")

    assert recur(project, "disable", "tick") is True
    assert recur(project, "disable", "new") is True
    stay(project, ["tick", "new"], 2.2)
    job = recur(project, "run_now", "new")
    assert recur(project, "enable", "new") is True
    wait_slots(project, len(slots(project, "new")) + 2, "new")

    recur(project, "unschedule", "new")
    before = slots(project, "new")
    wait_known(project, ["tick"])
    assert slots(project, "new") == before

    # What is disabled stays so over a restart.
    stop_all(project)
    again = project.start()
    wait_scheduler(project)
    recur(project, "schedule", "late", task="work", schedule=1)
    wait_slots(project, 2, "late")
    tick = slots(project)
    assert tick
    stop_all(project)
    assert slots(project) == tick
    assert project.start("--drain").wait_exit() == 0
    take_over(project)
    project.enqueued.append(int(job))
    assert verdict(project) == []
    assert len(project.attempts()) == project.count("jobs")
    names = {name for (name,) in project.query("SELECT queue_name FROM steady_queue_jobs")}
    assert names == {"default", "a", "b"}
    for supervisor in [*supervisors, again]:
        assert "Traceback" not in supervisor.errors()


def test_a_scheduler_runs_for_what_is_added_alone(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, scheduler=DYNAMIC))
    supervisor = project.start()
    wait_known(project, [], schedulers=1)
    assert "scheduler: 0 recurring tasks; looks every 0.4 s for those" in supervisor.output()
    recur(project, "schedule", "new", task="work", schedule=1)
    wait_slots(project, 1, "new")
    stop_all(project)


def test_what_was_added_is_not_scheduled_unless_that_is_enabled(make_project: MakeProject) -> None:
    project = scheduled(make_project, scheduler={"polling_interval": 0.2})
    recur(project, "schedule", "new", task="work", schedule=1)
    supervisor = project.start()
    wait_slots(project, 2)
    stop_all(project)
    assert slots(project, "new") == []
    assert "that were added at run time (1) are not scheduled" in supervisor.errors()
    without = make_project(queue(processes=1))
    recur(without, "schedule", "new", task="work", schedule=1)
    supervisor = without.start()
    supervisor.wait_ready(1)
    assert schedulers(without) == []
    assert "scheduler" not in supervisor.output()
    stop_all(without)


def test_a_row_of_a_task_that_is_not_there_is_logged_and_the_others_go_on(
    make_project: MakeProject,
) -> None:
    project = scheduled(make_project, scheduler=DYNAMIC)
    for key in ("a good one", "hostile", "more"):
        recur(project, "schedule", key, task="work", schedule=1)
    project.query(
        "UPDATE steady_queue_recurring_tasks SET task_path = 'antigravity.fly' "
        "WHERE key = 'hostile'"
    )
    supervisor = project.start()
    for key in ("a good one", "more", "tick"):
        wait_slots(project, 2, key)
    stop_all(project)
    assert slots(project, "hostile") == []
    lines = [line for line in supervisor.errors().splitlines() if "'hostile'" in line]
    assert len(lines) == 1
    assert "Task 'antigravity.fly' is not registered in this process" in lines[0]
    assert supervisor.errors().count("Started scheduler-") == 1


def test_a_task_of_the_code_with_the_key_of_an_added_one_takes_its_place(
    make_project: MakeProject,
) -> None:
    project = scheduled(make_project, EVERY_SECOND, scheduler=DYNAMIC)
    recur(project, "schedule", "tick", task="note", schedule=1)
    supervisor = project.start()
    wait_slots(project, 2)
    stop_all(project)
    [(key, _, path, *_)] = mirrored(project)
    assert (key, path) == ("tick", "tests.faultapp.tasks.work")
    paths = project.query("SELECT DISTINCT task_path FROM steady_queue_jobs")
    assert paths == [("tests.faultapp.tasks.work",)]
    assert "Recurring task 'tick' in code replaces the one" in supervisor.errors()
