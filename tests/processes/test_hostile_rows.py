"""Rows that a stranger has damaged: each ends by itself, and no other job waits behind it."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing

import pytest

from .conftest import MakeProject
from .scenarios import queue, stop_all
from .waiting import wait_for

#: What is done to the first job, and the states in which it may end.
DAMAGES = {
    "text that is no text": (
        "UPDATE steady_queue_jobs SET arguments = CAST(x'80' AS TEXT) WHERE id = :id",
        {"failed"},
    ),
    "arguments of bytes": (
        "UPDATE steady_queue_jobs SET arguments = x'00ff' WHERE id = :id",
        {"failed"},
    ),
    "a task path of bytes": (
        "UPDATE steady_queue_jobs SET task_path = x'00ff' WHERE id = :id",
        {"failed"},
    ),
    "numbers that are words": (
        "UPDATE steady_queue_jobs SET attempts = 'many', max_attempts = 'more' WHERE id = :id",
        {"finished"},
    ),
    "a number after which there is none": (
        "UPDATE steady_queue_jobs SET attempts = 9223372036854775807 WHERE id = :id",
        {"failed"},
    ),
    "a rank that is a word": (
        "UPDATE steady_queue_ready_executions SET rank = 'first' WHERE job_id = :id",
        {"finished"},
    ),
    "a token that is a word": (
        "UPDATE steady_queue_ready_executions SET token = 'x' WHERE job_id = :id",
        {"finished"},
    ),
    "an instant that is none": (
        "UPDATE steady_queue_jobs SET enqueued_at = 'yesterday' WHERE id = :id",
        {"finished"},
    ),
    "lists that are none": (
        "UPDATE steady_queue_jobs SET errors = '{', worker_ids = '7' WHERE id = :id",
        {"finished"},
    ),
    "a job without its row": ("DELETE FROM steady_queue_jobs WHERE id = :id", {""}),
    "a job that has ended": (
        "UPDATE steady_queue_jobs SET finished_at = enqueued_at WHERE id = :id",
        {"finished"},
    ),
    "a job that is scheduled too": (
        "INSERT INTO steady_queue_scheduled_executions "
        "(created_at, job_id, queue_name, rank, token, due_at) "
        "SELECT created_at, job_id, queue_name, rank, token, created_at "
        "FROM steady_queue_ready_executions WHERE job_id = :id",
        {"finished", "failed"},
    ),
    "a job that a process unknown to us has claimed": (
        "INSERT INTO steady_queue_claimed_executions "
        "(created_at, job_id, queue_name, rank, token, process_id) "
        "SELECT created_at, job_id, queue_name, rank, 9, 4711 "
        "FROM steady_queue_ready_executions WHERE job_id = :id",
        {"failed"},
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_row_harms_no_other_job(damage: str, make_project: MakeProject) -> None:
    statement, endings = DAMAGES[damage]
    # A process that is not registered may live, and has that long to store an outcome.
    leases = {"process_heartbeat_interval": 0.5, "process_alive_threshold": 3.0}
    project = make_project(queue(processes=1, threads=2, **leases))
    damaged, *good = project.enqueue("work", [0.0], [0.0], [0.0], [0.0])
    with closing(sqlite3.connect(project.database, timeout=20)) as connection, connection:
        connection.execute(statement, {"id": damaged})
    drained = project.manage("steady_queue", "--drain")
    assert drained.returncode == 0, drained.stderr
    assert {project.state_of(job) for job in good} == {"finished"}
    if damage != "a job without its row":
        assert project.state_of(damaged) in endings
    assert len(project.attempts_at(damaged)) <= 1
    assert project.count("ready_executions") == 0
    assert project.count("claimed_executions") == 0
    assert "unavailable" not in drained.stderr


def test_a_limit_that_is_a_word_ends_no_worker(make_project: MakeProject) -> None:
    """Nobody is admitted until somebody who enqueues says what the limit is."""
    project = make_project(queue(processes=1, threads=2))
    first, second = project.enqueue("one_by_one", [0.0], [0.0])
    with closing(sqlite3.connect(project.database, timeout=20)) as connection, connection:
        connection.execute("UPDATE steady_queue_semaphores SET \"limit\" = 'many'")
    supervisor = project.start()
    workers = supervisor.wait_ready(1)
    wait_for(lambda: project.state_of(first) == "finished", 20, "the end of the first job")
    project.enqueue("work")
    wait_for(lambda: project.unfinished() == 1, 20, "the end of another job")
    assert project.state_of(second) == "blocked"
    project.enqueue("one_by_one", [0.0])
    project.wait_done()
    assert supervisor.workers() == workers
    stop_all(project)


SIGNED = 'TASKS["default"]["OPTIONS"] = {"payload": {"sign": True}}'
#: What a stranger does to the first job of a queue whose payloads are signed.
FORGERIES = {
    "arguments of their own": 'arguments = \'{"args":[0.0],"kwargs":{}}\'',
    "other arguments under the signature": "arguments = replace(arguments, '0.0', '0.1')",
    "the arguments of another task": (
        "arguments = (SELECT arguments FROM steady_queue_jobs WHERE id = :other)"
    ),
    "another task": "task_path = (SELECT task_path FROM steady_queue_jobs WHERE id = :other)",
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_signed_queue_runs_nothing_that_a_stranger_has_written(
    forgery: str, make_project: MakeProject
) -> None:
    project = make_project(queue(processes=1, threads=2), extra=SIGNED)
    forged, good = project.enqueue("work", [0.0], [0.0])
    [other] = project.enqueue("awork", [0.0])
    with closing(sqlite3.connect(project.database, timeout=20)) as connection, connection:
        statement = f"UPDATE steady_queue_jobs SET {FORGERIES[forgery]} WHERE id = :id"
        connection.execute(statement, {"id": forged, "other": other})
    drained = project.manage("steady_queue", "--drain")
    assert drained.returncode == 0, drained.stderr
    states = [project.state_of(job) for job in (forged, good, other)]
    assert states == ["failed", "finished", "finished"]
    assert project.attempts_at(forged) == []


#: What is done to the row of a job that a worker is running.
CLAIMED_DAMAGES = {
    "numbers that are words": "attempts = 'many', max_attempts = 'more'",
    "a number after which there is none": "attempts = 9223372036854775807",
    "an instant that is a word": "enqueued_at = 'yesterday'",
    "an instant that cannot be": "enqueued_at = '2026-99-99 00:00:00'",
    "a task path of bytes": "task_path = x'00ff'",
    "lists that are none": "errors = '{', worker_ids = '7'",
}


@pytest.mark.parametrize("damage", CLAIMED_DAMAGES)
def test_a_row_damaged_while_its_job_runs_stops_no_recovery(
    damage: str, make_project: MakeProject
) -> None:
    project = make_project(queue(processes=1, threads=3))
    supervisor = project.start()
    supervisor.wait_ready(1)
    jobs = project.enqueue("work", [60.0], [60.0], [60.0])
    for job in jobs:
        project.wait_started(job)
    with closing(sqlite3.connect(project.database, timeout=20)) as connection, connection:
        connection.execute(
            f"UPDATE steady_queue_jobs SET {CLAIMED_DAMAGES[damage]} WHERE id = ?", [jobs[0]]
        )
    supervisor.send_tree(signal.SIGKILL)
    supervisor.wait_exit()
    successor = project.start()
    successor.wait_ready(1)
    project.wait_done(20)
    assert {project.state_of(job) for job in jobs} == {"failed"}
    project.enqueue("work")
    project.wait_done(20)
    assert project.count("claimed_executions") == 0
    assert successor.stop() == 0


def test_a_due_time_that_sorts_last_does_not_stop_the_dispatcher(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=1))
    [damaged] = project.enqueue("work", [0.0], delay=3600)
    with closing(sqlite3.connect(project.database, timeout=20)) as connection, connection:
        connection.execute("UPDATE steady_queue_scheduled_executions SET due_at = 'zzz'")
    supervisor = project.start()
    supervisor.wait_ready(1)
    [job] = project.enqueue("work", [0.0], delay=0.3)
    wait_for(lambda: project.state_of(job) == "finished", 10, "the delayed job")
    assert project.state_of(damaged) == "scheduled"
    assert "could not" not in supervisor.errors()
    assert supervisor.stop() == 0
