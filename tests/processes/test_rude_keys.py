"""Keys of callbacks and schedules whose functions exit: no process of the queue does."""

from __future__ import annotations

from .conftest import MakeProject
from .scenarios import queue, stop_all
from .schedules import scheduled
from .waiting import wait_for

MODULE = "tests.faultapp.rude_keys"


def test_a_key_that_exits_ends_neither_worker_nor_supervisor(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, threads=2, task_modules=[MODULE]))
    supervisor = project.start()
    workers = supervisor.wait_ready(1)
    project.enqueue("rude_keys:work", *[[]] * 6)
    project.enqueue("work", *[[0.0]] * 3)
    project.wait_done(20)
    assert supervisor.workers() == workers
    # Its callback is the supervisor's to store.
    [killer] = project.enqueue("rude_keys:kill_worker")
    wait_for(lambda: project.state_of(killer) == "failed", 20, "the end of the killed job")
    project.enqueue("work", *[[0.0]] * 3)
    project.wait_done(20)
    stop_all(project)
    told = project.query("SELECT count(*) FROM steady_queue_jobs WHERE task_path LIKE '%.told'")
    assert told == [(7,)]
    said = supervisor.errors()
    assert said.count("is enqueued as its job describes it, without a limit") == 7
    assert "tests.faultapp.rude_keys.rude_key, line 20, raised SystemExit" in said


def test_a_key_that_exits_keeps_no_other_schedule_from_running(make_project: MakeProject) -> None:
    project = scheduled(
        make_project,
        """
        from datetime import timedelta
        from steady_queue_core import recurring
        from tests.faultapp.rude_keys import told
        from tests.faultapp.tasks import work

        recurring(schedule=timedelta(seconds=1), key="rude")(told)
        recurring(schedule=timedelta(seconds=1), key="tick")(work)
        """,
    )
    supervisor = project.start()
    wait_for(lambda: len(project.attempts()) >= 3, 20, "three runs")
    stop_all(project)
    assert "Recurring task 'rude' could not be enqueued" in supervisor.errors()
    assert "has ended" not in supervisor.errors()
