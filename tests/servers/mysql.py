"""A private MySQL, Oracle's: by a starter, or as installed.

A starter is a program that runs ``start PORT`` until the server answers on 127.0.0.1, where root
logs in without a password, and leaves the server in the background until ``stop PORT``. It keeps
everything in ``$TMPDIR``. ``STEADY_QUEUE_MYSQL_SERVER`` names it; else a ``mysql-server`` on PATH
is taken for one.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from .address import Address
from .programs import FOLDERS, NotFound, account_for, executables, version_of
from .recipe import Plan

SERVERS = (
    *FOLDERS,
    "/usr/local/mysql/bin",
    "/opt/homebrew/opt/mysql*/bin",
    "/usr/local/opt/mysql*/bin",
)


class _Login:
    def address(self, port: int) -> Address:
        return Address("mysql", "root", "", "127.0.0.1", port, "steady_queue")


@dataclass(frozen=True)
class StartedMySQL(_Login):
    """MySQL behind a starter, which changes the account itself."""

    starter: Path
    account: str | None = None

    @property
    def origin(self) -> str:
        return f"started by {self.starter}"

    def plan(self, folder: Path, port: int) -> Plan:
        return Plan(
            serve=[self.starter, "start", str(port)], stop=[self.starter, "stop", str(port)]
        )


@dataclass(frozen=True)
class MySQL(_Login):
    """A server that is installed."""

    server: Path
    account: str | None

    @property
    def origin(self) -> str:
        return f"started from {self.server}"

    def plan(self, folder: Path, port: int) -> Plan:
        common: list[str | Path] = [self.server, "--no-defaults", f"--datadir={folder / 'data'}"]
        return Plan(
            prepare=[[*common, "--initialize-insecure"]],
            serve=[
                *(*common, f"--port={port}", "--bind-address=127.0.0.1", "--mysqlx=OFF"),
                # Relative to the data folder: the whole path may be too long for a socket.
                *("--socket=server.sock", f"--pid-file={folder / 'pid'}", "--max-connections=200"),
                *("--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0"),
            ],
        )


def find() -> MySQL | StartedMySQL:
    """Return the starter that the environment names, or a MySQL that is installed."""
    named = os.environ.get("STEADY_QUEUE_MYSQL_SERVER")
    if named:
        starter = shutil.which(named)
        if starter is None:
            raise NotFound(f"STEADY_QUEUE_MYSQL_SERVER is {named!r}, which cannot be run")
        return StartedMySQL(Path(starter).resolve())
    account = account_for("mysql")
    for server in executables("mysqld", SERVERS):
        # MariaDB goes by this name as well.
        if "mariadb" not in version_of(server, account).lower():
            return MySQL(server, account)
    if starter := shutil.which("mysql-server"):
        return StartedMySQL(Path(starter).resolve())
    raise NotFound(
        "no mysqld of MySQL, neither on PATH nor in the usual places, and no starter in "
        "STEADY_QUEUE_MYSQL_SERVER"
    )
