"""Servers that end idle sessions: that is no outage, and not told as one."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import Dialect
from steady_queue_core.processes.base.database import QueueDatabase, Unavailable

from ..models.everywhere import on_every_server
from .waiting import wait_for

#: What has a server end the present session when it has been idle for so long.
LIMITS = {"postgresql": "SET idle_session_timeout = '300ms'", "mysql": "SET wait_timeout = 1"}
OWN = {"postgresql": "SELECT pg_backend_pid()", "mysql": "SELECT connection_id()"}
OTHERS = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE pid = %s",
    "mysql": "SELECT count(*) FROM information_schema.processlist WHERE id = %s",
}


def ask(connection: BaseDatabaseWrapper, statements: dict[str, str], *values: int) -> int:
    """Return the number that the statement of this kind of server returns, if any."""
    with connection.cursor() as cursor:
        cursor.execute(statements[connection.vendor], values)
        return int(cursor.fetchone()[0]) if cursor.description else 0


def limited_session(connection: BaseDatabaseWrapper, dialect: Dialect) -> int:
    """Let the server end this session soon; return its number."""
    ask(connection, LIMITS)
    return ask(connection, OWN)


def poll(connection: BaseDatabaseWrapper, dialect: Dialect) -> list[str]:
    """Use the connection as workers do."""
    return dialect.list_queues(connection)


@on_every_server
def test_an_idle_session_that_the_server_ends_is_no_outage(
    using: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "steady_queue.database")
    database = QueueDatabase(using)

    def wait_for_end(session: int) -> None:
        """With a connection of another thread."""
        try:
            wait_for(
                lambda: ask(connections[using], OTHERS, session) == 0, 20, "the end of the session"
            )
        finally:
            connections[using].close()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(wait_for_end, database.run(limited_session)).result()
        with pytest.raises(Unavailable) as lost:
            database.run(poll)
        assert (lost.value.pause, lost.value.lost) == (0.0, True)
        assert database.run(poll) == []
        # From now on a connection is tested after as long a rest.
        thread.submit(wait_for_end, database.run(limited_session)).result()
        assert database.run(poll) == []
    told = [(record.levelname, vars(record)["event"]) for record in caplog.records]
    assert (told, database.outages) == ([("DEBUG", "database.reconnected")], 1)
