"""A node of MariaDB or MySQL: a process in a namespace, and what its administrator asks it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import mysql.connector

from .node import DidNotStart
from .sql_files import statements_of

#: Seconds until a node has to answer after its start, or to end when it is told to.
PATIENCE = 60
#: Seconds for one question; a frozen node answers none.
ANSWER = 3
PORT = 3306


class MySQLNode:
    """One node; root logs in without a password by the socket, also while it is cut off."""

    def __init__(
        self, name: str, host: str, folder: Path, command: Sequence[str | Path], log: Path
    ) -> None:
        self.name = name
        #: What comes before the names of the queue's tables in a statement of ``run``.
        self.database_prefix = "queue."
        self.address = (host, PORT)
        self.folder = folder
        self.log = log
        self._command = [*command, f"--socket={folder / 'server.sock'}"]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *options: str) -> None:
        """Start the node, and return when it answers."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*self._command, *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**os.environ, "TMPDIR": str(self.folder)},
                # Ctrl-C in a terminal is for the tests.
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE
        while not self.answers():
            if not self.is_running or time.monotonic() > deadline:
                raise DidNotStart(f"{self.name}: {self._last_words()}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End the node as its administrator does."""
        if self._process is None or not self.is_running:
            return
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def answers(self) -> bool:
        return bool(self.ask("SELECT 1"))

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query; none if the node does not answer."""
        with suppress(mysql.connector.Error, OSError):
            return self.run(statement, limit=ANSWER)
        return []

    def run(self, *statements: str, limit: int = PATIENCE) -> list[tuple[Any, ...]]:
        """Run statements as root, each within ``limit`` seconds; return the rows of the last."""
        rows: list[tuple[Any, ...]] = []
        login = {"user": "root", "unix_socket": str(self.folder / "server.sock")}
        with (
            closing(
                mysql.connector.connect(
                    **login,
                    autocommit=True,
                    connection_timeout=ANSWER,
                    read_timeout=limit,
                    use_pure=True,
                )
            ) as connection,
            closing(connection.cursor()) as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
                found: Any = cursor.fetchall() if cursor.description else []
                rows = list(found)
        return rows

    def run_file(self, path: Path) -> None:
        """Run a file of the examples."""
        self.run(*statements_of(path))

    def _signal(self, number: signal.Signals) -> None:
        # The whole group: a node may have programs that copy data.
        if self._process is not None and self.is_running:
            os.killpg(self._process.pid, number)

    def _last_words(self) -> str:
        return " | ".join(self.log.read_text(errors="replace").splitlines()[-8:]) or "no output"
