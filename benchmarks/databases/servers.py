"""Opens the server of a database: for SQLite a directory, else a given or a private server."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

from benchmarks import environments
from benchmarks.databases import DatabaseServer
from benchmarks.options import Options

DRIVERS = ("psycopg[binary]", "mysql-connector-python")
"""The drivers that the harness itself uses."""


@contextmanager
def open_server(options: Options, sqlite: str) -> Iterator[DatabaseServer]:
    """Yield the server of the database in `options`, and stop it afterwards if it is private.

    ``sqlite`` is the version of SQLite in the competitors' interpreter.
    """
    if options.database == "sqlite":
        from benchmarks.databases.sqlite import Files

        yield Files(options, sqlite)
        return
    environments.borrow(DRIVERS, sys.executable)
    from benchmarks.databases.mysql import MySQLServer
    from benchmarks.databases.postgres import PostgresServer
    from benchmarks.databases.private_server import server
    from tests.servers.address import DRIVER

    os.environ[DRIVER] = options.mysql_driver
    place = options.directory.parent
    with server(options.database, place, durable=options.durable) as address:
        opened = (
            PostgresServer(address)
            if options.database == "postgres"
            else MySQLServer(address, options.database)
        )
        with closing(opened):
            yield opened
