"""What only the server finds too large: a proxy may have a limit of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from django.db import DatabaseError, DataError, connections

from steady_queue_core.conformance.base import new_job
from steady_queue_core.dialects import dialect_for
from steady_queue_mysql import server
from steady_queue_mysql.batches import Statement, execute_all

from ..aliases import added_alias
from ..servers import client
from ..servers.own import own_server
from .cases import TITLES

#: The least that servers have for the limit of what they take.
SMALL = 1048576
LARGE = "x" * 3_000_000


@pytest.fixture(params=[pytest.param(alias, marks=pytest.mark.server(alias)) for alias in TITLES])
def own(request: pytest.FixtureRequest, django_db_blocker: Any) -> Iterator[str]:
    """The alias of a server whose limit nobody else meets."""
    alias = f"own_{request.param}"
    with (
        own_server(request.param) as started,
        client.fresh_database(started.address) as address,
        django_db_blocker.unblock(),
        added_alias(alias, address.settings()),
    ):
        yield alias


def test_it_is_an_error_of_data_too_or_the_end_of_the_connection(own: str) -> None:
    connection, dialect = connections[own], dialect_for(own)
    known = server.server_of(connection)
    large = server.Server(known.text, known.version, known.is_mariadb, 1 << 30)
    execute_all(connection, [Statement(f"SET GLOBAL max_allowed_packet = {SMALL}")])
    connection.close()
    with mock.patch.object(server, "_ask", return_value=large):
        server.server_of(connection)
        with pytest.raises(DatabaseError) as raised:
            dialect.enqueue(connection, [new_job(arguments=LARGE)])
    told_in_time = isinstance(raised.value, DataError)
    assert told_in_time != dialect.is_lost_connection(connection, raised.value), raised.value
    connection.close()
    [found] = execute_all(connection, [Statement("SELECT @@max_allowed_packet")])
    assert found.rows[0][0] == SMALL
    execute_all(connection, [Statement(f"SET GLOBAL max_allowed_packet = {known.max_packet}")])
    connection.close()
    [found] = execute_all(connection, [Statement("SELECT LENGTH(%s)", [LARGE])])
    assert found.rows[0][0] == len(LARGE)
