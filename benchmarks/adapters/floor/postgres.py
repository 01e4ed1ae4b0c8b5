"""The floor on PostgreSQL: the dialect's statements on a bare connection of psycopg.

The statements are the dialect's own, put together as it does for a worker of all queues; the driver
prepares them, and sends values apart from them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from benchmarks.adapters.floor.loop import BATCH, Outcome
from steady_queue_core.dialects import ProcessIdentity, QueueSelector, portable
from steady_queue_postgres import claim_sql, prepared
from steady_queue_postgres.enqueue_sql import ENQUEUE_ALIKE, ENQUEUE_ONE
from steady_queue_postgres.queue_patterns import QueuePatterns
from steady_queue_postgres.scan_position import columns
from steady_queue_postgres.settle_sql import Part

CLAIM = claim_sql.claiming(claim_sql.BY_RANK, frozenset())
EXCHANGE = claim_sql.claiming(claim_sql.BY_RANK, frozenset({Part.ALIKE, Part.UPDATED}))
PROBE = claim_sql.probe(claim_sql.BY_RANK)

SPANS = columns(portable.Bookmarks().spans(whole=True))
RANGES = QueuePatterns(QueueSelector(patterns=("*",))).ranges


class Queue:
    """The statements on one connection, each a transaction of its own."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        for name, value in prepared.SETTINGS.items():
            self.connection.execute("SELECT set_config(%s, %s, false)", [name, value])
        self._process = ProcessIdentity(0, f"floor-{os.getpid()}")

    def enqueue(self, task: str, numbers: Sequence[int]) -> None:
        values = {"queue_name": "default", "rank": 0, "task_path": task, "backend_name": "default"}
        calls = [json.dumps([[number], {}]) for number in numbers]
        statement, arguments = (
            (ENQUEUE_ONE, calls[0]) if len(calls) == 1 else (ENQUEUE_ALIKE, json.dumps(calls))
        )
        values |= {"arguments": arguments, "max_attempts": 1}
        self.connection.execute(statement, values).fetchall()

    def register(self) -> ProcessIdentity:
        row = self.connection.execute(
            "INSERT INTO steady_queue_processes"
            " (kind, name, pid, hostname, metadata, created_at, last_heartbeat_at)"
            " VALUES ('worker', %s, %s, '', '{}', now(), now()) RETURNING id",
            [self._process.name, os.getpid()],
        ).fetchone()
        self._process = self._process._replace(id=int(row[0]))
        return self._process

    def any_ready(self) -> bool:
        values = {**SPANS, **_named(self._process), "limit": 1}
        return bool(self.connection.execute(PROBE, values).fetchone()[0])

    def exchange(self, outcomes: list[Outcome], process: ProcessIdentity) -> list[tuple[Any, ...]]:
        values: dict[str, object] = {
            **SPANS,
            **RANGES,
            "asks": False,
            "limit": BATCH,
            **_named(process),
        }
        statement = CLAIM
        if outcomes:
            statement = EXCHANGE
            values |= _given(outcomes)
        cursor = self.connection.execute(statement, values)
        # The columns of a job follow those about the statement as a whole.
        first = [column.name for column in cursor.description].index("job_id")
        return [row[first:] for row in cursor.fetchall() if row[first] is not None]


def _named(process: ProcessIdentity) -> dict[str, object]:
    return {"process_id": process.id, "process_name": process.name}


def _given(outcomes: list[Outcome]) -> dict[str, object]:
    job_ids, tokens, workers, returned, started = zip(*outcomes, strict=True)
    return {
        "attempts": 1,
        "worker_ids": workers[0],
        "errors": None,
        "preserve": True,
        "job_ids": _array(job_ids),
        "tokens": _array(tokens),
        "started": _array(started),
        "return_values": _array(returned),  # Numbers, which need no quotes.
    }


def _array(values: Sequence[object]) -> str:
    return f"{{{','.join(map(str, values))}}}"


def connect(settings: Mapping[str, Any]) -> Queue:
    """Connect to the database that an entry of `DATABASES` names."""
    return Queue(
        psycopg.connect(
            host=settings["HOST"],
            port=settings["PORT"],
            user=settings["USER"],
            password=settings["PASSWORD"],
            dbname=settings["NAME"],
            autocommit=True,
            prepare_threshold=0,
        )
    )
