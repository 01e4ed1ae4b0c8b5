"""Servers of a test's own, which it may kill, freeze and start again."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..processes import proc
from ..processes.waiting import wait_for
from . import client, keeper
from .address import Address
from .private import PrivateServer
from .recipe import Plan, Recipe

#: The account of the project's processes; ours is an administrator's.
WORKER = "worker"
#: Another one.
STRANGER = "stranger"
#: What has been committed survives a kill.
DURABLE = "--innodb-flush-log-at-trx-commit=1"

POSTGRES_ACCOUNT = [f"CREATE ROLE {WORKER} LOGIN"]
MYSQL_ACCOUNTS = [
    f"CREATE USER {WORKER}@'%'",
    rf"GRANT ALL ON `steady\_queue\_%`.* TO {WORKER}@'%'",
    f"CREATE USER {STRANGER}@'%'",
]


class Mortal:
    """A recipe for a server whose keeper does not leave with it."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.account, self.origin = recipe.account, recipe.origin

    def plan(self, folder: Path, port: int) -> Plan:
        plan = self.recipe.plan(folder, port)
        durable = [] if self.address(port).scheme == "postgresql" else [DURABLE]
        return plan if plan.stop else replace(plan, serve=[*plan.serve, *durable], mortal=True)

    def address(self, port: int) -> Address:
        return self.recipe.address(port)


class BreakableServer:
    """A private server; whatever a test has done to it, ``restore`` mends it."""

    def __init__(self, recipe: Recipe) -> None:
        self._private = PrivateServer(Mortal(recipe))
        self._admin: Any = None
        self.address = self._private.address
        self.is_postgres = self.address.scheme == "postgresql"
        self.is_mariadb = "MariaDB" in self._private.version
        data = Path(client.data_folder(self.address))
        self._pid_file = data / "postmaster.pid"
        if not self.is_postgres:
            [(name,)] = self.ask("SELECT @@pid_file")
            self._pid_file = Path(name)
        self._recorded = data.parent / keeper.PID_FILE
        self._log = data.parent / "again.log"
        self.pid = self._read_pid()
        self._command = _words(self.pid, "cmdline")
        self._start: dict[str, Any] = {
            "cwd": os.readlink(f"/proc/{self.pid}/cwd"),
            "env": {**os.environ, "TMPDIR": str(data.parent), "LC_ALL": "C"},
        }
        if os.geteuid() == 0:
            found = os.stat(f"/proc/{self.pid}")
            self._start |= {"user": found.st_uid, "group": found.st_gid, "extra_groups": []}
        self._birth = _birth(self.pid)
        self._own: subprocess.Popen[bytes] | None = None
        for statement in POSTGRES_ACCOUNT if self.is_postgres else MYSQL_ACCOUNTS:
            self.ask(statement)
        if self.is_postgres:
            with closing(client.connect(self.address, "template1")) as template:
                template.execute(f"GRANT CREATE ON SCHEMA public TO {WORKER}")

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement as an administrator, whose connection is kept: the server may be full."""
        try:
            return self._ask(statement)
        except Exception as error:
            if "nknown thread" in str(error) or self._admin is None:
                raise
            self._leave()
            return self._ask(statement)

    def _ask(self, statement: str) -> list[tuple[Any, ...]]:
        if self._admin is None:
            self._admin = client.connect(self.address)
        with closing(self._admin.cursor()) as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    def _leave(self) -> None:
        admin, self._admin = self._admin, None
        with suppress(Exception):
            admin.close()

    # --- the process -------------------------------------------------------------------------

    def kill(self) -> None:
        """End the server at once, as a crash does."""
        family = self._family()
        proc.send(self.pid, signal.SIGKILL, self._birth)
        if self._own is not None:
            self._own.wait()
        # PostgreSQL's processes notice that they are alone; a new one waits for the last of them.
        wait_for(lambda: not any(map(proc.alive, family)), 20, "the end of the server")

    def start(self) -> None:
        """Start the server again, and wait until it answers."""
        with open(self._log, "ab") as log:
            self._own = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._start,
            )
        self.pid, self._birth = self._own.pid, _birth(self._own.pid)
        self._recorded.write_text(str(self.pid))
        wait_for(self._answers, 30, "the server")

    def freeze(self) -> None:
        """Stop every process of the server: connections stay, and nobody answers."""
        self._signal(signal.SIGSTOP, self._family())

    def freeze_sessions(self, pids: Iterable[int]) -> None:
        """Stop processes of PostgreSQL that serve a session each."""
        self._signal(signal.SIGSTOP, pids)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT, reversed(self._family()))

    def restore(self) -> None:
        """Have the server run."""
        if not proc.alive(self.pid):
            self.start()
        self.thaw()

    def close(self) -> None:
        self._leave()
        self._private.close()
        if self._own is not None:
            self._own.wait()

    # --- sessions ----------------------------------------------------------------------------

    def fill(self) -> ExitStack:
        """Let others take all connections that there are, until the stack is closed."""
        stack = ExitStack()
        if self.is_postgres:
            self.ask(f"ALTER ROLE {WORKER} CONNECTION LIMIT 0")
            stack.callback(self.ask, f"ALTER ROLE {WORKER} CONNECTION LIMIT -1")
            self.end_sessions()
            return stack
        [(most,)] = self.ask("SELECT @@max_connections")
        self.ask("SET GLOBAL max_connections = 10")
        stack.callback(self.ask, f"SET GLOBAL max_connections = {most}")
        stranger = replace(self.address, user=STRANGER)
        while self.sessions():
            self.end_sessions()
            with suppress(Exception):
                while True:
                    stack.enter_context(closing(client.connect(stranger)))
        return stack

    def sessions(self, database: str = "") -> list[int]:
        """Return the sessions of the project's processes, or all those of a database."""
        if self.is_postgres:
            whose = f"datname = '{database}'" if database else f"usename = '{WORKER}'"
            found = f"SELECT pid FROM pg_stat_activity WHERE {whose}"
        else:
            whose = f"db = '{database}'" if database else f"user = '{WORKER}'"
            found = f"SELECT id FROM information_schema.processlist WHERE {whose}"
        return [number for (number,) in self.ask(found)]

    def end_sessions(self, *numbers: int) -> None:
        """End these sessions, or all of the project's processes."""
        verb = "SELECT pg_terminate_backend({})" if self.is_postgres else "KILL {}"
        for number in numbers or self.sessions():
            try:
                self.ask(verb.format(number))
            except Exception as error:
                if "nknown thread" not in str(error):  # It has ended by itself.
                    raise

    def _read_pid(self) -> int:
        return int(self._pid_file.read_text().split()[0])

    def _answers(self) -> bool:
        if not proc.alive(self.pid):
            raise AssertionError(f"the server has ended: {self._log.read_text()[-2000:]}")
        try:
            self.ask("SELECT 1")
        except Exception:
            return False
        return True

    def _signal(self, signum: int, pids: Iterable[int]) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signum)

    def _family(self) -> list[int]:
        children = [each.pid for each in proc.everything() if each.parent == self.pid]
        return [self.pid, *children]


def _birth(pid: int) -> int:
    found = proc.stat(pid)
    assert found is not None
    return found.birth


def _words(pid: int, name: str) -> list[str]:
    return [
        os.fsdecode(word) for word in Path(f"/proc/{pid}/{name}").read_bytes().split(b"\0")[:-1]
    ]
