"""What clusters of MariaDB and of MySQL have in common."""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import abstractmethod
from contextlib import closing
from pathlib import Path
from typing import Any

import mysql.connector

from tests.servers.address import MYSQL_DRIVERS, mysql_driver
from tests.servers.programs import identity

from .mysql_node import ANSWER, MySQLNode
from .node import DidNotStart
from .three_nodes import ThreeNodes

LOGIN = {"user": "queue", "password": "change-me", "database": "queue"}


class MySQLCluster(ThreeNodes[MySQLNode]):
    """Three nodes, each with its own folder, that are asked as MySQL is."""

    vendor = "mysql"

    def __init__(self, folder: Path, subnet: int) -> None:
        super().__init__(folder, "my", subnet)

    def database(self, node: MySQLNode | None = None) -> dict[str, Any]:
        host, port = node.address if node is not None else ("127.0.0.1", self.port)
        return {
            "ENGINE": MYSQL_DRIVERS[mysql_driver()],
            **{"NAME": "queue", "USER": "queue", "PASSWORD": "change-me"},
            **{"HOST": host, "PORT": port},
        }

    def empty(self) -> None:
        name = LOGIN["database"]
        self.expect_primary().run(
            f"DROP DATABASE {name}", f"CREATE DATABASE {name} CHARACTER SET utf8mb4"
        )

    def answers(self) -> bool:
        return bool(self.ask_proxy("SELECT 1"))

    def ask_proxy(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, as a client of the queue; none if nobody answers."""
        try:
            return self.query(statement)
        except (mysql.connector.Error, OSError):
            return []

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Ask the queue's database, through the proxy."""
        login = {"host": "127.0.0.1", "port": self.port, **LOGIN}
        with (
            closing(
                mysql.connector.connect(
                    **login, connection_timeout=ANSWER, read_timeout=ANSWER, use_pure=True
                )
            ) as connection,
            closing(connection.cursor()) as cursor,
        ):
            cursor.execute(statement)
            return list(cursor.fetchall())

    def _run_for(self, node: MySQLNode, *command: str | Path) -> None:
        """Run a program as the account of the servers, with nothing outside of a node's folder."""
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=node.folder,
            env={**os.environ, "TMPDIR": str(node.folder)},
            **identity(self.account),
        )
        if done.returncode:
            raise DidNotStart(f"{node.name}: {done.stdout[-500:]} {done.stderr[-500:]}")

    @property
    @abstractmethod
    def account(self) -> str | None: ...

    @abstractmethod
    def _command(self, number: int) -> list[str | Path]: ...

    @abstractmethod
    def _prepare(self, node: MySQLNode) -> None: ...

    def _new_node(self, number: int, name: str) -> MySQLNode:
        folder = self.folder / name
        folder.mkdir(parents=True)
        if self.account:
            shutil.chown(folder, self.account)
        command = [
            *self.network.inside(number),
            *self._command(number),
            f"--datadir={folder / 'data'}",
        ]
        node = MySQLNode(name, self.hosts[number - 1], folder, command, self.folder / f"{name}.log")
        self._prepare(node)
        return node
