"""What the doctor reads: the beginning of large tables, by an index, on a connection that works."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from steady_queue_core.doctor import examine, examine_job
from steady_queue_core.models import ReadyExecution

from ..models.everywhere import on_every_server
from .ward import HOUR, Ward


@pytest.mark.django_db(transaction=True)
def test_jobs_behind_a_ready_one_are_not_read() -> None:
    ward = Ward("default")
    [*_, job_id] = ward.ready(3)
    ward.ready(2)
    ward.ready(rank=-5)
    with CaptureQueriesContext(connections["default"]) as queries:
        [state] = examine_job(job_id, "default")
    assert "3 jobs of queue" in state.text
    table = ReadyExecution._meta.db_table
    [counting] = [each["sql"] for each in queries if "turn" in each["sql"] and "<" in each["sql"]]
    with connections["default"].cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {counting}")
        steps = [detail for *_, detail in cursor.fetchall() if table in detail]
    [more_urgent, earlier] = [each for each in steps if "steady_queue_ready_queue" in each]
    assert "queue_name=? AND rank<?" in more_urgent
    assert "queue_name=? AND rank=? AND turn<?" in earlier


@pytest.mark.django_db(transaction=True)
def test_a_longer_queue_takes_no_more_statements() -> None:
    ward = Ward("default")
    ward.failed(1)
    ward.ready(5)
    ward.ready(5, delay=HOUR)
    with CaptureQueriesContext(connections["default"]) as few:
        examine("default")
    ward.finished(50)
    ward.ready(200)
    with CaptureQueriesContext(connections["default"]) as many:
        examine("default")
    assert len(many) <= len(few)
    for query in many:
        sql: Any = query["sql"]
        if 'FROM "steady_queue_jobs"' in sql:
            assert "LIMIT" in sql or " IN (" in sql, sql


@on_every_server
def test_a_connection_that_the_server_has_ended_is_made_anew(using: str) -> None:
    Ward(using)
    connection: Any = connections[using]
    connection.connection.close()
    assert not connection.is_usable()
    assert "database-unreachable" not in [each.code for each in examine(using)]
