"""The floor on MySQL and MariaDB: the dialect's statements on a bare connection of the driver.

They are put together and sent in packets as the dialect does for a worker of all queues: a claim
and what it stores on the way are two round trips.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime
from importlib import import_module
from typing import Any

from benchmarks.adapters.floor.loop import BATCH, Outcome
from steady_queue_core.dialects import Ending, NewJob, ProcessIdentity, portable
from steady_queue_core.dialects import Outcome as Ended
from steady_queue_mysql import claim
from steady_queue_mysql.conversation import BEGIN, COMMIT
from steady_queue_mysql.enqueue import TAKE_TIME, insertions
from steady_queue_mysql.literals import ids, insertion, portions
from steady_queue_mysql.packets import Statement
from steady_queue_mysql.settle import settlement


class Queue:
    """The statements on one connection."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        [(version,)] = self.ask([Statement("SELECT VERSION()")])[0]
        locked = "" if "mariadb" in version.lower() else "OF r"
        place = {"index": claim.BY_RANK, "where": claim.NONE_PAUSED}
        self._pick = Statement(claim.PICK.format(**place, limit=BATCH, of=locked))

    def ask(self, statements: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        """Send a packet of statements; return the rows of each."""
        sql = "; ".join(statement.sql for statement in statements)
        values = [value for statement in statements for value in statement.values]
        answers = []
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(sql, values or None)
            while True:
                answers.append(list(cursor.fetchall()) if cursor.description else [])
                if not cursor.nextset():
                    return answers

    def enqueue(self, task: str, arguments: Sequence[object], count: int) -> None:
        job = NewJob(
            queue_name="default",
            rank=0,
            task_path=task,
            backend_name="default",
            arguments=json.dumps([arguments, {}]),
        )
        inserted = [
            statement
            for portion in portions([job] * count)
            for statement in insertions(portion, [None] * len(portion))
        ]
        self.ask([*BEGIN, TAKE_TIME, *inserted, COMMIT])

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
        return bool(self.ask([claim.ANY_READY])[0])

    def exchange(self, outcomes: list[Outcome], process: ProcessIdentity) -> list[tuple[Any, ...]]:
        before = [
            *BEGIN,
            *settlement([_ended(each) for each in outcomes]),
            claim.registered(process),
        ]
        picked = self.ask([*before, claim.PAUSED, self._pick])[-1]
        if not picked:
            self.ask([COMMIT])
            return []
        picked = [(row[0], portable.next_token(row[1]), *row[2:]) for row in picked]
        claims = [
            (row[0], row[2], row[3], row[1], row[15].isoformat(" ", "microseconds"), process.id)
            for row in picked
        ]
        deleted = ids(claim.DELETE_READY, [row[0] for row in picked])
        self.ask([insertion(claim.INSERT_CLAIMED, claims), *deleted, COMMIT])
        return [(*row[:4], *row[5:8]) for row in picked]


def _ended(outcome: Outcome) -> Ended:
    job_id, token, workers, value, started = outcome
    instant = datetime.fromisoformat(f"{started}+00:00")
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
