"""How the databases carry out the queries of the lists: by an index that has the order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from steady_queue_core.admin import batch_list
from steady_queue_core.dialects import tables
from steady_queue_core.listings import job_listing

from .places import tasks_in
from .visitor import Visitor

#: Rows in each state; more than a page looks at.
ROWS = 20_000
QUERIES = [
    {},
    {"state": "ready"},
    {"state": "ready", "queue": "q7"},
    {"state": "scheduled"},
    {"state": "blocked"},
    {"state": "blocked", "key": "k7"},
    {"state": "waiting"},
    {"state": "running"},
    {"state": "failed"},
    {"state": "failed", "error": f"{17:016}"},
    {"state": "finished"},
    {"state": "ready", "task": "t.x"},
    {"state": "scheduled", "queue": "q7"},
    {"state": "failed", "task": "t.x", "queue": "q7"},
    {"state": "finished", "task": "t.x"},
    {"task": "t.x"},
    {"state": "failed", "q": "17"},
    {"state": "failed", "q": "t."},
    {"state": "failed", "since": "2026-01-01T00:00Z", "until": "2026-01-01T00:20Z"},
    {"state": "failed", "since": "2026-01-01T00:00Z", "error": f"{17:016}"},
    {"state": "finished", "since": "2026-01-01T00:10Z", "until": "2026-01-01T00:20Z"},
    {"state": "ready", "arguments": "ada"},
    {"arguments": "ada", "since": "2026-01-01T00:00Z"},
    {"q": "17"},
]
#: Rows from 1 to a number, and an instant for each that few others have.
NUMBERS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) ",
    "postgresql": "WITH n(i) AS (SELECT generate_series(1, {count})) ",
}
INSTANTS = {
    "sqlite": "datetime('2026-01-01', '+' || (i / 5) || ' seconds')",
    "postgresql": "'2026-01-01 00:00:00+00'::timestamptz + (i / 5) * interval '1 second'",
}
#: State, columns beside those of every execution, and their values. All are due at once.
EXECUTIONS = (
    (tables.READY, ", turn", ", i"),
    (tables.SCHEDULED, ", due_at", ", {past}"),
    (tables.BLOCKED, ", concurrency_key", ", 'k' || (i % 10)"),
    (tables.CLAIMED, ", process_id", ", 1"),
    (tables.WAITING, ", width", ", 1"),
)


def fill(vendor: str, cursor: Any) -> None:
    """Have as many jobs in each state, by the database alone."""
    instant = INSTANTS[vendor]
    past = instant.replace("(i / 5)", "0")

    def insert(table: str, columns: str, values: str, count: int = ROWS) -> None:
        numbers = NUMBERS[vendor].format(count=count)
        cursor.execute(f"{numbers} INSERT INTO {table} ({columns}) SELECT {values} FROM n")

    insert(
        tables.JOBS,
        "id, queue_name, task_path, backend_name, rank, arguments, max_attempts, attempts, token, "
        "enqueued_at, finished_at",
        f"i, 'q' || (i % 10), 't.' || (i % 3), 'default', 0, '', 1, 0, 0, {past}, "
        f"CASE WHEN i > {5 * ROWS} THEN {instant} END",
        7 * ROWS,
    )
    for position, (table, columns, values) in enumerate(EXECUTIONS):
        insert(
            table,
            f"job_id, created_at, queue_name, rank, token{columns}",
            f"i + {position * ROWS}, {instant}, 'q' || (i % 10), 0, 0" + values.format(past=past),
        )
    insert(
        tables.FAILED,
        "job_id, created_at, exception_class, message, fingerprint",
        f"i + {5 * ROWS}, {instant}, 'e', 'm', '00000000000000' || (10 + i % 10)",
    )
    insert(
        tables.CHECKPOINTS,
        "job_id, token, done, total, text, updated_at",
        f"i + {3 * ROWS}, 0, 1, 2, '', {instant}",
    )
    batch = "kind, description, backend_name, created_at, started_at"
    values = f"'group', 'd' || (i % 10), 'default', {past}, {past}"
    insert(tables.BATCHES, f"id, {batch}", f"i, {values}", 10)
    insert(
        tables.BATCHES,
        f"id, {batch}, finished_at, total, failed",
        f"i + 10, {values}, {instant}, 1, i % 2",
    )
    insert(tables.MEMBERS, "id, batch_id, job_id, name, state", "i, 1 + (i % 5), i, '', i % 3")
    insert(
        tables.DEPENDENCIES,
        "id, job_id, parent_id, run_when, state, number",
        "i, i + 5, i, 0, i % 2, 0",
    )
    cursor.execute("ANALYZE")


#: What a step says that reads the rows with one key of an index.
ONE_KEY = ("turn=?", "fingerprint=? AND created_at=?")
#: Tables of a few rows, which are read as they are.
SMALL = (tables.PAUSES, tables.PROCESSES)
#: What is in the order of its ids is read as it is, as far as a page goes.
BY_ID = {name: f'FROM "{name}" ORDER BY 1 DESC LIMIT' for name in (tables.JOBS, tables.BATCHES)}
#: Pages of batches, each with a query.
BATCHES = [
    {},
    {"status": "running"},
    {"status": "failed"},
    {"kind": "chain"},
    {"q": "d3"},
    {"q": "7"},
]
SEES = ("view_job", "view_jobbatch", "view_arguments")
MEMBERS = [{}, {"members": "failed"}, {"p": "after[9000]"}, {"p": "before[9000]"}]


def statements(using: str, visitor: Visitor) -> Iterator[tuple[str, Any]]:
    """Yield what the lists ask the database, on their first and their second pages."""
    sent: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "steady_queue_" in sql and sql.startswith("SELECT") and "COUNT(*)" not in sql:
            sent.append((sql, params))
        return execute(sql, params, many, context)

    with connections[using].execute_wrapper(note):
        for query in QUERIES:
            page = visitor.list(**query)
            assert page.status == 200
            if 'rel="next"' in page.source:
                assert visitor.see(visitor.url("job") + page.link("(?:Next|Look further)")).ids != 0
        for query in BATCHES:
            page = visitor.list("jobbatch", **query)
            assert page.status == 200
            if 'rel="next"' in page.source:
                assert visitor.see(visitor.url("jobbatch") + page.link("(?:Next|Look further)"))
        for query in MEMBERS:
            page = visitor.see(visitor.url("jobbatch", "change", 1), **query)
            assert page.status == 200
            assert page.link("Next") or query == {"p": "before[9000]"}
    assert len(sent) > len(QUERIES) + len(BATCHES)
    yield from sent


@pytest.fixture(autouse=True)
def _small_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page looks at few of all jobs, as in a large queue: else it is right to read them all."""
    monkeypatch.setattr(job_listing, "LOOKED_AT", ROWS // 100)
    monkeypatch.setattr(batch_list, "LOOKED_AT", ROWS // 20)


@pytest.mark.django_db
def test_sqlite_reads_by_indexes_in_their_order() -> None:
    with connections["default"].cursor() as cursor:
        fill("sqlite", cursor)
        for sql, params in [*statements("default", Visitor(*SEES))]:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
            steps = [row[3] for row in cursor.fetchall()]
            sorts = [step for step in steps if step.startswith("USE TEMP B-TREE")]
            # What is equal in the index's columns is little, and sorted by itself.
            one_key = any(key in step for step in steps for key in ONE_KEY)
            assert one_key or not [each for each in sorts if "RIGHT PART" not in each], (
                sql,
                steps,
            )
            scans = [step for step in steps if re.match(r"SCAN (?!part\d)(?!.*INDEX)", step)]
            wanted = [f"SCAN {table}" for table, order in BY_ID.items() if order in sql]
            allowed = [*wanted, *(f"SCAN {table}" for table in SMALL)]
            assert [each for each in scans if each not in allowed] == [], (sql, steps)


@pytest.mark.django_db(databases=["default", "postgres"])
def test_postgresql_reads_by_indexes_in_their_order(settings: Any) -> None:
    settings.TASKS = tasks_in("postgres")
    with connections["postgres"].cursor() as cursor:
        fill("postgresql", cursor)
        for sql, params in [*statements("postgres", Visitor(*SEES))]:
            cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
            [(found,)] = cursor.fetchall()
            plan = found if isinstance(found, list) else json.loads(found)
            nodes = [*walk(plan[0]["Plan"])]
            kinds = [node["Node Type"] for node in nodes]
            # What is equal in the index's column is little, and sorted by itself.
            sorted_rows = [n["Plan Rows"] for n in nodes if n["Node Type"] == "Sort"]
            assert max(sorted_rows, default=0) < 100, (sql, kinds)
            scanned = [n["Relation Name"] for n in nodes if n["Node Type"] == "Seq Scan"]
            assert not [each for each in scanned if each not in SMALL], (sql, kinds)


def walk(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from walk(part)
