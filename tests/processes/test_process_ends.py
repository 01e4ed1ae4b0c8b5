"""What real processes leave that are killed, frozen or lost, and those that are stopped."""

from __future__ import annotations

import json
import signal
from typing import Any

from .conftest import MakeProject
from .harness import Project
from .scenarios import (
    SHORT_LEASE,
    SOON,
    busy_worker,
    freeze,
    queue,
    stop_all,
    thaw,
    work_with_a_backlog,
)
from .waiting import wait_for

COLUMNS = "pid, kind, reason, held, lost, details, supervisor_id, process_id"


def ends(project: Project) -> list[dict[str, Any]]:
    rows = project.query(f"SELECT {COLUMNS} FROM steady_queue_process_ends ORDER BY id")
    found = [dict(zip(COLUMNS.split(", "), row, strict=True)) for row in rows]
    return [each | json.loads(each["details"]) for each in found]


def wait_ends(project: Project, number: int) -> list[dict[str, Any]]:
    def told() -> list[dict[str, Any]]:
        return found if len(found := ends(project)) >= number else []

    return wait_for(told, 30, f"{number} ends")


def test_a_killed_worker_leaves_what_it_held_and_a_stopped_one_nothing(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, threads=1))
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    running = work_with_a_backlog(project, worker)
    supervisor.send(signal.SIGKILL, worker)
    [end] = wait_ends(project, 1)
    assert (end["pid"], end["kind"], end["reason"]) == (worker, "worker", "signal")
    assert (end["exit_code"], end["why"]) == (-9, "It was killed by SIGKILL.")
    assert end["queues"] == ["*"]
    assert end["threads"] == 1
    assert end["recovered_by"].startswith("supervisor-")
    assert end["lost"] == 1
    assert end["held"] > 3
    assert end["jobs"][0] == {
        "id": running, "task": "tests.faultapp.tasks.work", "queue": "default",
        "ending": "failed", "lost": True,
    }  # fmt: skip
    assert end["endings"]["failed"] == 1
    assert end["endings"]["released"] >= 1
    project.wait_done()
    supervisor.wait_ready(1)
    stop_all(project)
    assert len(ends(project)) == 1


def test_a_worker_that_exits_in_a_task_leaves_its_status(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1))
    project.start().wait_ready(1)
    project.enqueue("leave", [3])
    [end] = wait_ends(project, 1)
    assert (end["reason"], end["exit_code"], end["lost"]) == ("exit", 3, 1)
    assert end["why"] == "It ended with exit code 3."
    stop_all(project)


def test_a_frozen_worker_is_told_of_once_though_it_is_killed_later(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, threads=1, **SHORT_LEASE), extra=SOON)
    supervisor = project.start()
    supervisor.wait_ready(1)
    project.enqueue("work_again", [8.0])
    worker = busy_worker(project, supervisor)
    freeze(project, supervisor, worker)
    [end] = wait_ends(project, 1)
    assert (end["pid"], end["reason"], end["lost"]) == (worker, "frozen", 1)
    assert end["jobs"][0]["ending"] == "retried"
    thaw(supervisor, worker)
    wait_for(lambda: worker not in supervisor.children(), 30, "the end of the frozen worker")
    supervisor.send(signal.SIGQUIT)
    assert supervisor.wait_exit() == 0
    assert [each["pid"] for each in ends(project)] == [worker]


def test_a_supervisor_that_is_killed_with_its_processes_is_told_of_by_the_next(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, threads=1))
    first = project.start()
    first.wait_ready(1)
    [job] = project.enqueue("work", [60.0])
    project.wait_started(job)
    children = {*first.children(), first.pid}
    first.send_tree(signal.SIGSTOP)  # So that none sees the end of another.
    first.send_tree(signal.SIGKILL)
    first.wait_exit()
    project.start().wait_ready(1)
    found = wait_ends(project, len(children))
    assert {each["pid"] for each in found} == children
    assert {each["reason"] for each in found} == {"found"}
    assert sum(each["lost"] for each in found) == 1
    stop_all(project)
    assert len(ends(project)) == len(children)


def test_a_task_that_outlasts_a_stop_is_told_of(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=1, shutdown_timeout=0.2))
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    [job] = project.enqueue("work", [60.0])
    project.wait_started(job)
    freeze(project, supervisor, worker)
    supervisor.send(signal.SIGTERM)
    assert supervisor.wait_exit() == 0
    [end] = ends(project)
    assert (end["pid"], end["reason"], end["endings"]) == (worker, "stop", {"released": 1})
    assert end["why"] == (
        "It did not end in time when it was told to: it was killed by SIGKILL."
    )  # fmt: skip
