"""The floor on MySQL and MariaDB: the dialect's statements on a bare connection of the driver.

They are put together and sent in packets as the dialect does for a worker of all queues: a claim
and what it stores on the way are two round trips.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from benchmarks.adapters.floor.loop import BATCH, Outcome
from steady_queue_core.dialects import EXECUTION_COLUMNS, Ending, NewJob, ProcessIdentity, portable
from steady_queue_core.dialects import Outcome as Ended
from steady_queue_mysql import claim_sql as sql
from steady_queue_mysql.batches import Statement
from steady_queue_mysql.clock import to_text
from steady_queue_mysql.enqueue import TAKE_TIME, insertions
from steady_queue_mysql.inline_tables import chunks, insert_rows, with_ids
from steady_queue_mysql.settle import settlement
from steady_queue_mysql.transactions import BEGIN, COMMIT, READ_COMMITTED

CLAIMED = ("job_id", "queue_name", "rank", "token")
#: What the loop is given of a claim.
GIVEN = (*EXECUTION_COLUMNS, "task_path", "backend_name", "arguments")


class Queue:
    """The statements on one connection."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        [(version,)] = self.ask([Statement("SELECT VERSION()")])[0]
        locked = "" if "mariadb" in version.lower() else "OF r"
        place = {"index": sql.BY_RANK, "where": sql.NONE_PAUSED}
        self._pick = Statement(sql.PICK.format(**place, limit=BATCH, of=locked))

    def ask(self, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        """Send a packet of statements; return the rows of each."""
        text = "; ".join(statement.sql for statement in statements)
        values = [value for statement in statements for value in statement.values]
        answers = []
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(text, values or None)
            while True:
                answers.append(list(cursor.fetchall()) if cursor.description else [])
                if not cursor.nextset():
                    return answers

    def enqueue(self, task: str, numbers: Sequence[int]) -> None:
        jobs = [
            NewJob(
                queue_name="default",
                rank=0,
                task_path=task,
                backend_name="default",
                arguments=json.dumps([[number], {}]),
            )
            for number in numbers
        ]
        inserted = [
            statement
            for chunk in chunks(jobs)
            for statement in insertions(chunk, [None] * len(chunk))
        ]
        self.ask([BEGIN, TAKE_TIME, *inserted, COMMIT])

    def register(self) -> ProcessIdentity:
        name = f"floor-{os.getpid()}"
        insert = (
            "INSERT INTO steady_queue_processes"
            " (kind, name, pid, hostname, metadata, created_at, last_heartbeat_at)"
            f" VALUES ('worker', '{name}', {os.getpid()}, '', '{{}}', NOW(6), NOW(6))"
        )
        [(number,)] = self.ask([Statement(insert), Statement("SELECT LAST_INSERT_ID()")])[1]
        return ProcessIdentity(int(number), name)

    def any_ready(self) -> bool:
        return bool(self.ask([sql.ANY_READY])[0])

    def exchange(self, outcomes: list[Outcome], process: ProcessIdentity) -> list[tuple[Any, ...]]:
        before = [
            READ_COMMITTED,
            BEGIN,
            *settlement([_ended(each) for each in outcomes]),
            sql.registered(process),
        ]
        picked = self.ask([*before, sql.PAUSED, self._pick])[-1]
        if not picked:
            self.ask([COMMIT])
            return []
        rows = [dict(zip(sql.PICKED, row, strict=True)) for row in picked]
        for row in rows:
            row["token"] = portable.next_token(row["token"])
        claims = [
            (*(row[name] for name in CLAIMED), to_text(row["now"].replace(tzinfo=UTC)), process.id)
            for row in rows
        ]
        deleted = with_ids(sql.DELETE_READY, [row["job_id"] for row in rows])
        self.ask([insert_rows(sql.INSERT_CLAIMED, claims), *deleted, COMMIT])
        return [tuple(row[name] for name in GIVEN) for row in rows]


def _ended(outcome: Outcome) -> Ended:
    job_id, token, workers, value, started = outcome
    instant = datetime.fromtimestamp(started, UTC)
    return Ended(
        Ending.FINISHED,
        job_id,
        token,
        "default",
        0,
        attempts=1,
        worker_ids=workers,
        started_at=instant,
        last_attempted_at=instant,
        return_value=value,
    )


def connect(settings: Mapping[str, Any]) -> Queue:
    """Connect to the database that an entry of `DATABASES` names, by the driver that it names."""
    login = {
        "host": settings["HOST"],
        "port": settings["PORT"],
        "user": settings["USER"],
        "password": settings["PASSWORD"],
        "database": settings["NAME"],
        "autocommit": True,
        **settings["OPTIONS"],
    }
    if settings["ENGINE"] == "mysql.connector.django":
        return Queue(import_module("mysql.connector").connect(**login))
    return Queue(import_module("MySQLdb").connect(**login))
