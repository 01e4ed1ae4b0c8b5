"""A node of Patroni: etcd, Patroni and PostgreSQL on one machine."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import psycopg

from .machine import Command, Machine
from .node import DidNotStart
from .waiting import wait_until

#: Seconds until a node has to answer after its start, or to end when it is told to.
PATIENCE = 90
#: Seconds for one question; a frozen node answers none.
ANSWER = 3
PORT = 5432
REST = 8008
LOGIN = {"user": "postgres", "password": "change-me-two"}


class PatroniNode:
    """One node; it is asked at its address, so that nothing is heard of it while it is cut off."""

    #: What comes before the names of the queue's tables in a statement of ``run``.
    database_prefix = ""

    def __init__(
        self,
        name: str,
        machine: Machine,
        programs: Mapping[str, Command],
        environment: Mapping[str, str],
    ) -> None:
        self.name = name
        self.address = (machine.host, PORT)
        self._machine = machine
        self._programs = programs
        self._environment = environment
        self._processes: list[subprocess.Popen[bytes]] = []

    def begin(self) -> None:
        """Start the node, and do not wait for it: the first ones have to find each other."""
        self._processes = [
            self._machine.run(name, command, self._environment)
            for name, command in self._programs.items()
        ]

    def start(self) -> None:
        """Start the node, and return when its server answers."""
        self.begin()
        try:
            wait_until(lambda: self.status("health") == 200, PATIENCE, f"{self.name} answers")
        except TimeoutError as error:
            raise DidNotStart(f"{self.name}: {self._last_words()}") from error

    def stop(self) -> None:
        """End the node as its administrator does: Patroni and its server first."""
        for process in reversed(self._processes):
            process.terminate()
            process.wait(PATIENCE)

    def kill(self) -> None:
        self._machine.kill()
        for process in self._processes:
            process.wait()

    def freeze(self) -> None:
        self._machine.freeze()

    def thaw(self) -> None:
        self._machine.thaw()

    def status(self, path: str, limit: float = ANSWER) -> int | None:
        """Return the status of an answer of Patroni; ``None``: there is none."""
        try:
            with urllib.request.urlopen(self._url(path), timeout=limit) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def members(self) -> list[dict[str, Any]]:
        """Return what Patroni knows of all nodes; nothing if it does not answer."""
        try:
            with urllib.request.urlopen(self._url("cluster"), timeout=ANSWER) as answer:
                return list(json.load(answer)["members"])
        except OSError:
            return []

    def tell(self, path: str, **values: str) -> str:
        """Have Patroni do something; return what it says when it is done."""
        request = urllib.request.Request(self._url(path), json.dumps(values).encode())
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return str(answer.read().decode())

    def run(self, *statements: str, database: str = "queue") -> list[tuple[Any, ...]]:
        """Run statements as the superuser; return the rows of the last one."""
        host, port = self.address
        return ask({"host": host, "port": port, "dbname": database, **LOGIN}, *statements)

    def _url(self, path: str) -> str:
        return f"http://{self._machine.host}:{REST}/{path}"

    def _last_words(self) -> str:
        log = self._machine.folder / "patroni.log"
        return " | ".join(log.read_text(errors="replace").splitlines()[-8:]) or "no output"


def ask(login: Mapping[str, Any], *statements: str) -> list[tuple[Any, ...]]:
    """Run statements, each by itself; return the rows of the last one."""
    rows: list[tuple[Any, ...]] = []
    with closing(
        psycopg.connect(
            **login, connect_timeout=ANSWER, tcp_user_timeout=ANSWER * 1000, autocommit=True
        )
    ) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
    return rows
