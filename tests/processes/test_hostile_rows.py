"""Rows that a stranger has damaged: each ends by itself, and no other job waits behind it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from .conftest import MakeProject
from .scenarios import queue

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
    "a rank that is a word": (
        "UPDATE steady_queue_ready_executions SET rank = 'first' WHERE job_id = :id",
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
    project = make_project(queue(processes=1, threads=2))
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
