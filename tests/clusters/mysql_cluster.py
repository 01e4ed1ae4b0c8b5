"""What clusters of MariaDB and of MySQL have in common."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import mysql.connector

from tests.servers.address import MYSQL_DRIVERS, mysql_driver
from tests.servers.private import free_port
from tests.servers.programs import identity

from .haproxy import Proxy
from .mysql_node import ANSWER, DidNotStart, MySQLNode
from .namespaces import Namespaces

LOGIN = {"user": "queue", "password": "change-me", "database": "queue"}


class MySQLCluster(ABC):
    """Three nodes in namespaces, and a proxy before them that runs as in the example."""

    name: str
    vendor = "mysql"
    example: Path
    node_names: Sequence[str]

    def __init__(self, folder: Path, subnet: int) -> None:
        self.folder = folder
        self.network = Namespaces(f"my{subnet}-", subnet)
        self.hosts = [self.network.address(number) for number in range(1, 4)]
        self.nodes: list[MySQLNode] = []
        self._port = free_port()
        self._proxy: Proxy | None = None

    def start(self) -> None:
        self.network.make()
        for number, name in enumerate(self.node_names, start=1):
            self.nodes.append(self._new_node(number, name))
        self._found()
        addresses = {
            name.upper(): f"{host}:{node.address[1]}"
            for name, host, node in zip(self.node_names, self.hosts, self.nodes, strict=True)
        }
        addresses["QUEUE"] = f"127.0.0.1:{self._port}"
        self._proxy = Proxy(self.example / "haproxy.cfg", addresses, self.folder / "haproxy.log")
        self.wait("a writer behind the proxy", 30, lambda: bool(self.ask_proxy("SELECT 1")))

    def stop(self) -> None:
        if self._proxy is not None:
            self._proxy.close()
        for node in self.nodes:
            node.kill()
        self.network.remove()

    def database(self, node: MySQLNode | None = None) -> dict[str, Any]:
        host, port = node.address if node is not None else ("127.0.0.1", self._port)
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

    def wait_complete(self, limit: float) -> None:
        self.wait(
            "all three nodes",
            limit,
            lambda: self.is_complete() and self.primary() is not None,
        )

    def cut_off(self, node: MySQLNode) -> None:
        self.network.cut_off(self.nodes.index(node) + 1)

    def reconnect(self, node: MySQLNode) -> None:
        self.network.reconnect(self.nodes.index(node) + 1)

    @abstractmethod
    def primary(self) -> MySQLNode | None: ...

    @abstractmethod
    def switch_over(self) -> None: ...

    @abstractmethod
    def is_complete(self) -> bool: ...

    def ask_proxy(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, as a client of the queue; none if nobody answers."""
        try:
            return self.query(statement)
        except (mysql.connector.Error, OSError):
            return []

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Ask the queue's database, through the proxy."""
        login = {"host": "127.0.0.1", "port": self._port, **LOGIN}
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

    def expect_primary(self) -> MySQLNode:
        found = self.primary()
        if found is None:
            raise LookupError(f"{self.name}: no node takes writes")
        return found

    def wait(self, what: str, limit: float, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + limit
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name}: waited {limit:.0f} s for {what}")
            time.sleep(0.1)

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

    @abstractmethod
    def _found(self) -> None:
        """Start the nodes for the first time, until they know each other."""

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
