"""With ``DEBUG``, Django keeps every statement of a connection: a queue process forgets them."""

from __future__ import annotations

from typing import Any

from django.db import connection

from steady_queue_core.models import Job
from steady_queue_core.processes.base.connections import tidy_connections, watch_connections
from steady_queue_core.processes.base.database import QueueDatabase

from .samples import real_transactions


@real_transactions
def test_statements_of_the_queue_and_of_tasks_are_not_kept(settings: Any) -> None:
    settings.DEBUG = True
    watch_connections()
    connection.close()

    def look(connection: Any, dialect: Any) -> int:
        dialect.list_queues(connection)
        return len(connection.queries_log)

    database = QueueDatabase("default")
    assert database.run(look) == database.run(look) == 1
    assert Job.objects.count() == 0
    assert len(connection.queries_log) == 1
    tidy_connections()
    assert len(connection.queries_log) == 0
