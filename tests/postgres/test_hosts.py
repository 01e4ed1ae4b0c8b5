"""Several hosts: the settings of docs/postgres-failover.md lead past those that take no writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections

from steady_queue_core.dialects import dialect_for

from .. import documents
from ..processes.waiting import wait_for
from ..servers import client
from ..servers.address import Address
from ..servers.own import own_server
from ..servers.private import PrivateServer, free_port
from .aliases import ALIAS

pytestmark = [
    pytest.mark.server(ALIAS),
    pytest.mark.django_db(transaction=True, databases=["default", ALIAS]),
]

HERE = "127.0.0.1"
READS_ONLY = "SHOW default_transaction_read_only"

#: Returns a connection to one of all the hosts, with the ``OPTIONS`` of the page and others.
Cluster = Callable[..., Any]


def documented() -> dict[str, Any]:
    """Return the entry of ``DATABASES`` that the page shows."""
    [block] = documents.blocks(documents.page("postgres-failover.md"), "python")
    names: dict[str, Any] = {"DATABASES": {}}
    exec(block, names)
    found: dict[str, Any] = names["DATABASES"]["default"]
    return found


@pytest.fixture(scope="module")
def reader(django_db_setup: None) -> Iterator[PrivateServer]:
    """A server that refuses writes, as a standby does."""
    with own_server(ALIAS) as server:
        prepare(server.address)
        yield server


def prepare(address: Address) -> None:
    """Let in whom the test's server lets in, or this one would be passed by for another reason."""
    ours = connections[ALIAS].settings_dict
    if ours["USER"] != address.user:
        client.query(address, f'CREATE ROLE "{ours["USER"]}" LOGIN')
    client.query(address, f'CREATE DATABASE "{ours["NAME"]}"')
    client.query(address, "ALTER SYSTEM SET default_transaction_read_only = on")
    client.query(address, "SELECT pg_reload_conf()")
    wait_for(lambda: client.query(address, READS_ONLY) == [("on",)], 10)


@pytest.fixture
def cluster(reader: PrivateServer) -> Iterator[Cluster]:
    """A host that is down, one that only reads, and the one with the test database."""
    ours, page = connections[ALIAS].settings_dict, documented()
    assert page["HOST"].count(",") == page["PORT"].count(",") == 2
    hosts = {
        "HOST": f"{HERE},{HERE},{ours['HOST'] or HERE}",
        "PORT": f"{free_port()},{reader.address.port},{writing_port()}",
    }
    made: list[Any] = []

    def make(**options: Any) -> Any:
        connection: Any = connections[ALIAS].copy("cluster")
        connection.settings_dict.update(hosts, OPTIONS=page["OPTIONS"] | options)
        made.append(connection)
        return connection

    yield make
    for connection in made:
        connection.close()


def writing_port() -> int:
    return int(connections[ALIAS].settings_dict["PORT"] or 5432)


def port_of(connection: Any) -> int:
    connection.ensure_connection()
    return int(connection.connection.info.port)


def test_a_project_gets_to_the_host_that_writes(cluster: Cluster) -> None:
    connection = cluster()
    assert port_of(connection) == writing_port()
    assert connection.connection.info.get_parameters()["tcp_user_timeout"] == "5000"
    assert dialect_for(ALIAS).checks(connection) == []


def test_a_process_of_the_queue_gets_there_too(cluster: Cluster) -> None:
    connection = cluster()
    dialect_for(ALIAS).limit_silence(connection, 7.0)
    dialect_for(ALIAS).prepare(connection, impatient=True)
    assert port_of(connection) == writing_port()


def test_without_the_attributes_of_the_session_any_host_would_do(
    cluster: Cluster, reader: PrivateServer
) -> None:
    connection = cluster(target_session_attrs="any")
    assert port_of(connection) == reader.address.port
    found = {message.id for message in dialect_for(ALIAS).checks(connection)}
    assert "steady_queue.E202" in found
