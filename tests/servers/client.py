"""Plain connections to a server, by its driver and without Django."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from secrets import token_hex
from typing import Any

from .address import Address

#: Seconds until a login is given up.
PATIENCE = 5


def connect(address: Address, name: str | None = None) -> Any:
    """Return a connection in autocommit mode, to the database ``name`` or to none in particular."""
    login = {
        "host": address.host,
        "port": address.port,
        "user": address.user,
        "password": address.password,
    }
    if address.scheme == "postgresql":
        import psycopg

        return psycopg.connect(
            **login, dbname=name or "postgres", connect_timeout=PATIENCE, autocommit=True
        )
    import mysql.connector

    chosen: dict[str, Any] = {} if name is None else {"database": name}
    if not address.password:
        # A private server has nothing to hide, and this driver takes 50 ms of processor time to
        # agree on a cipher: tests look at the database many times a second.
        chosen["ssl_disabled"] = True
    return mysql.connector.connect(
        **login, **chosen, connection_timeout=PATIENCE, autocommit=True, use_pure=True
    )


def query(address: Address, statement: str) -> list[tuple[Any, ...]]:
    """Run one statement on no database in particular."""
    with closing(connect(address)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []


def version(address: Address) -> str:
    """Return a server's name and version, such as ``MariaDB 10.11.19``."""
    if address.scheme == "postgresql":
        return f"PostgreSQL {query(address, 'SHOW server_version')[0][0].split()[0]}"
    number, *kind = str(query(address, "SELECT version()")[0][0]).split("-")
    return f"{'MariaDB' if 'MariaDB' in kind else 'MySQL'} {number}"


def data_folder(address: Address) -> str:
    """Return where a server keeps its data, as it knows it; asked as an administrator."""
    if address.scheme == "postgresql":
        return str(query(address, "SHOW data_directory")[0][0])
    return str(query(address, "SELECT @@datadir")[0][0])


@contextmanager
def fresh_database(address: Address, template: str | None = None) -> Iterator[Address]:
    """Create a database beside the one of ``address``; drop it in the end.

    It is empty, or a copy of the database ``template``, which nobody may be using.
    """
    name = f"{address.name}_{token_hex(4)}"
    postgres = address.scheme == "postgresql"
    options = f" TEMPLATE {template or 'template1'}" if postgres else " CHARACTER SET utf8mb4"
    query(address, f"CREATE DATABASE {name}{options}")
    try:
        if template is not None and not postgres:
            _copy_tables(address, template, name)
        yield replace(address, name=name)
    finally:
        query(address, f"DROP DATABASE {name}{' WITH (FORCE)' if postgres else ''}")


def _copy_tables(address: Address, source: str, target: str) -> None:
    with closing(connect(address, target)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("SET SESSION foreign_key_checks = 0")
        cursor.execute(f"SHOW TABLES FROM {source}")
        for (table,) in cursor.fetchall():
            cursor.execute(f"SHOW CREATE TABLE {source}.{table}")
            [(_, statement)] = cursor.fetchall()
            cursor.execute(statement)
            cursor.execute(f"INSERT INTO {table} SELECT * FROM {source}.{table}")
