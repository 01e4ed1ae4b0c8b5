"""Open the home of a database: nothing for SQLite; a server, named or started, for the others."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import environments
from benchmarks.databases import Home
from benchmarks.options import Options

DRIVERS = ("psycopg[binary]", "mysql-connector-python")
"""What the harness itself needs to speak with servers."""


@contextmanager
def home(options: Options, sqlite: str) -> Iterator[Home]:
    """Yield the home of the databases that `options` names; end what was started for it.

    ``sqlite``: the version of that in the contenders' interpreter.
    """
    if options.database == "sqlite":
        from benchmarks.databases.sqlite import Files

        yield Files(options, sqlite)
        return
    environments.borrow(DRIVERS, sys.executable)
    from benchmarks.databases.mysql import MySQLServer
    from benchmarks.databases.postgres import PostgresServer
    from benchmarks.databases.servers import server
    from tests.servers.address import DRIVER

    os.environ[DRIVER] = options.mysql_driver
    with server(options.database, options.directory.parent) as address:
        if options.database == "postgres":
            yield PostgresServer(address)
        else:
            yield MySQLServer(address, options.database)
