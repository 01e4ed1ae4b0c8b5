"""The floor on SQLite, under the same kind of lock file as this project.

The statements are written out again here, so that the floor stays where it is while the project's
change; when its tables or the moves between them change, change these as well.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.adapters.floor.loop import BATCH, Outcome
from steady_queue_core.dialects import ProcessIdentity, portable

NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now')"
PRESENT = f"SELECT {NOW}"
INSERT_ONE = f"""
INSERT INTO steady_queue_jobs (queue_name, task_path, backend_name, "rank", arguments, max_attempts,
                               attempts, token, enqueued_at, concurrency_discards)
VALUES ('default', ?, 'default', 0, ?, 1, 0, 0, {NOW}, false) RETURNING id"""
INSERT_ONE_READY = """
INSERT INTO steady_queue_ready_executions (job_id, queue_name, "rank", token, created_at, turn)
SELECT id, queue_name, "rank", 0, enqueued_at, id FROM steady_queue_jobs WHERE id = ?"""
LAST_ID = "SELECT seq FROM sqlite_sequence WHERE name = 'steady_queue_jobs'"
INSERT_JOB = """
INSERT INTO steady_queue_jobs (id, queue_name, task_path, backend_name, "rank", arguments,
                               max_attempts, attempts, token, enqueued_at, scheduled_at)
VALUES (?, 'default', ?, 'default', 0, ?, 1, 0, 0, ?, NULL)"""
INSERT_READY = """
INSERT INTO steady_queue_ready_executions (job_id, queue_name, "rank", token, created_at, turn)
VALUES (?1, 'default', 0, 0, ?2, ?1)"""

ANY_READY = "SELECT 1 FROM steady_queue_ready_executions LIMIT 1"
REGISTERED = "SELECT 1 FROM steady_queue_processes WHERE id = ? AND name = ?"
PAUSED = "SELECT queue_name FROM steady_queue_pauses"
PICK = """
SELECT r.job_id, r.token, r.queue_name, r."rank", j.task_path, j.backend_name, j.arguments,
       j.attempts, j.max_attempts, j.worker_ids, j.errors, j.enqueued_at, j.started_at
FROM steady_queue_ready_executions r LEFT JOIN steady_queue_jobs j ON j.id = r.job_id
ORDER BY r."rank", r.turn LIMIT ?"""
DELETE_READY = "DELETE FROM steady_queue_ready_executions WHERE job_id = ?"
INSERT_CLAIMED = """
INSERT INTO steady_queue_claimed_executions
       (job_id, queue_name, "rank", token, created_at, process_id)
VALUES (?, ?, ?, ?, ?, ?)"""
HELD = """
SELECT c.job_id, c.token FROM json_each(?) AS wanted
JOIN steady_queue_claimed_executions c ON c.job_id = wanted.value"""
DELETE_CLAIMED = "DELETE FROM steady_queue_claimed_executions WHERE job_id = ?"
END_JOB = """
UPDATE steady_queue_jobs SET attempts = ?, token = ?, worker_ids = ?, errors = ?,
       return_value = ?, started_at = ?, last_attempted_at = ?, finished_at = ?
WHERE id = ?"""
REGISTER = f"""
INSERT INTO steady_queue_processes (kind, name, pid, hostname, metadata, created_at,
                                    last_heartbeat_at)
VALUES ('worker', ?, ?, '', '{{}}', {NOW}, {NOW})"""


class Queue:
    """The statements on one connection, each move under the lock file."""

    def __init__(self, file: str, pragmas: str) -> None:
        self.connection = sqlite3.connect(file, isolation_level=None, timeout=20)
        self.connection.executescript(pragmas)
        self.lock = os.open(f"{file}-queue.lock", os.O_RDWR | os.O_CREAT, 0o666)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            yield self.connection
            self.connection.execute("COMMIT")
        finally:
            fcntl.flock(self.lock, fcntl.LOCK_UN)

    def enqueue(self, task: str, numbers: Sequence[int]) -> None:
        calls = [json.dumps([[number], {}]) for number in numbers]
        with self.transaction() as connection:
            if len(calls) == 1:
                job = connection.execute(INSERT_ONE, [task, calls[0]]).fetchone()
                connection.execute(INSERT_ONE_READY, job)
            else:
                self._insert_many(connection, task, calls)

    def register(self) -> ProcessIdentity:
        name = f"floor-{os.getpid()}"
        with self.transaction() as connection:
            cursor = connection.execute(REGISTER, [name, os.getpid()])
            return ProcessIdentity(int(cursor.lastrowid or 0), name)

    def any_ready(self) -> bool:
        return self.connection.execute(ANY_READY).fetchone() is not None

    def exchange(self, outcomes: list[Outcome], process: ProcessIdentity) -> list[tuple[Any, ...]]:
        with self.transaction() as connection:
            if outcomes:
                self._settle(connection, outcomes)
            return self._claim(connection, process)

    def _insert_many(self, connection: sqlite3.Connection, task: str, calls: list[str]) -> None:
        (present,) = connection.execute(PRESENT).fetchone()
        row = connection.execute(LAST_ID).fetchone()
        jobs = list(enumerate(calls, (row[0] if row else 0) + 1))
        connection.executemany(INSERT_JOB, [(i, task, call, present) for i, call in jobs])
        connection.executemany(INSERT_READY, [(i, present) for i, _ in jobs])

    def _settle(self, connection: sqlite3.Connection, outcomes: list[Outcome]) -> None:
        wanted = json.dumps([outcome[0] for outcome in outcomes])
        tokens = dict(connection.execute(HELD, [wanted]).fetchall())
        held = [outcome for outcome in outcomes if tokens.get(outcome[0]) == outcome[1]]
        (present,) = connection.execute(PRESENT).fetchone()
        connection.executemany(DELETE_CLAIMED, [(outcome[0],) for outcome in held])
        connection.executemany(
            END_JOB,
            [
                (1, token, workers, None, value, *[_text(started)] * 2, present, job_id)
                for job_id, token, workers, value, started in held
            ],
        )

    def _claim(
        self, connection: sqlite3.Connection, process: ProcessIdentity
    ) -> list[tuple[Any, ...]]:
        connection.execute(REGISTERED, process).fetchone()
        connection.execute(PAUSED).fetchall()
        ready = connection.execute(PICK, [BATCH]).fetchall()
        picked = [(row[0], portable.next_token(row[1]), *row[2:]) for row in ready]
        if picked:
            (present,) = connection.execute(PRESENT).fetchone()
            connection.executemany(DELETE_READY, [row[:1] for row in picked])
            connection.executemany(
                INSERT_CLAIMED,
                [(row[0], row[2], row[3], row[1], present, process.id) for row in picked],
            )
        return picked


def _text(instant: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(instant))


def connect(settings: Mapping[str, Any]) -> Queue:
    """Open the file that an entry of `DATABASES` names."""
    return Queue(settings["NAME"], settings["OPTIONS"]["init_command"])
