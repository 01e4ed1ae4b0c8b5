"""What a worker notes of its jobs outlives it, and is believed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from steady_queue_core.dialects import Ending, Outcome
from steady_queue_core.processes import marks
from steady_queue_core.processes.marks import StartMarks
from steady_queue_core.processes.membership import new_name

from .conftest import MakeProject
from .harness import wait_for
from .scenarios import queue, stop_all, wait_gone

BEGAN = datetime(2026, 5, 4, 3, 2, 1, 123456, tzinfo=UTC)


@pytest.fixture
def name() -> Iterator[str]:
    name = new_name("worker")
    yield name
    marks.forget(name)


def outcome(job_id: int, return_value: str = "[1]", ending: Ending = Ending.FINISHED) -> Outcome:
    return Outcome(
        ending,
        job_id,
        token=7,
        queue_name="default",
        rank=0,
        last_attempted_at=BEGAN,
        return_value=return_value,
    )


def test_started_jobs_are_running_until_they_are_cleared(name: str) -> None:
    own = StartMarks.create(name, 3)
    for job_id in (11, 12, 13):
        own.start(job_id)
    own.clear(12)
    assert own.remains().running == {11, 13}
    own.start(14)
    left = marks.left_by(name)
    assert left is not None
    assert left.running == {11, 13, 14}


def test_an_ended_job_is_not_running_and_its_outcome_is_kept(name: str) -> None:
    own = StartMarks.create(name, 2)
    own.start(11)
    own.start(12)
    own.end(11, outcome(11, '{"text":"a b  c"}'))
    left = marks.left_by(name)
    assert left is not None
    assert left.running == {12}
    assert left.ended == {11: marks.Ended(7, BEGAN, True, '{"text":"a b  c"}')}


def test_a_slot_keeps_nothing_of_the_job_before(name: str) -> None:
    own = StartMarks.create(name, 1)
    own.start(11)
    own.end(11, outcome(11))
    own.clear(11)
    assert own.remains() == marks.Remains()
    own.start(12)
    assert own.remains().running == {12}
    assert not own.remains().ended


@pytest.mark.parametrize(
    "noted",
    [
        pytest.param(outcome(11, "x" * marks.SLOT), id="too-long"),
        pytest.param(outcome(11, ending=Ending.RETRIED), id="not-finished"),
    ],
)
def test_an_outcome_that_is_not_noted_leaves_its_job_running(name: str, noted: Outcome) -> None:
    own = StartMarks.create(name, 1)
    own.start(11)
    own.end(11, noted)
    assert own.remains().running == {11}


def test_a_name_that_is_a_path_is_not_followed() -> None:
    assert marks.left_by("../../etc/passwd") is None


def test_abandoned_marks_of_dead_processes_are_swept_and_others_stay(name: str) -> None:
    mine, dead = StartMarks.create(name, 1), StartMarks.create(gone := new_name("worker"), 1)
    mine.belong_to(os.getpid())
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    dead.belong_to(pid)
    marks.sweep(older_than=0.0)
    assert marks.left_by(gone) is not None
    marks.sweep(older_than=datetime.now(UTC).timestamp() + 60)
    assert marks.left_by(gone) is None
    assert marks.left_by(name) is not None


def test_an_outcome_that_a_killed_worker_did_not_come_to_store_is_stored(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1, threads=1))
    supervisor = project.start()
    [worker] = supervisor.wait_ready(1)
    [(worker_name,)] = project.query(
        "SELECT name FROM steady_queue_processes WHERE pid = ?", worker
    )
    [job] = project.enqueue("work", [0.3])
    project.wait_started(job)

    def ended() -> bool:
        left = marks.left_by(worker_name)
        return left is not None and job in left.ended

    with project.write_lock():
        wait_for(ended, 10, "the outcome in the worker's marks")
        supervisor.send(signal.SIGKILL, worker)
        wait_gone([worker], 10)
    project.wait_done(20)
    stop_all(project)
    assert project.state_of(job) == "finished"
    assert len(project.attempts_at(job)) == 1
    assert marks.left_by(worker_name) is None
