"""A pgbouncer of the tests' own, in transaction mode, before the server of the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import SkipTest

from django.db import connections

from ..servers.private import free_port
from .aliases import ALIAS

CONFIGURATION = """
[databases]
* = host={host} port={port} user={user}{password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 200
default_pool_size = 20
ignore_startup_parameters = extra_float_digits
logfile = {folder}/log
"""


class Pooler:
    """A pooler that runs until it is killed; another one may take its place, and its port."""

    def __init__(self, command: list[str], port: int, account: pwd.struct_passwd | None) -> None:
        self.port = port
        self._command = command
        self._identity: dict[str, Any] = {}
        if account is not None:
            self._identity = {"user": account.pw_uid, "group": account.pw_gid}
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL, **self._identity)
        _await(self.port, self._process)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)


def find_pgbouncer() -> str | None:
    """Return the path of the program, if it is installed."""
    return shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")


@contextmanager
def pgbouncer(server: Mapping[str, Any] | None = None) -> Iterator[Pooler]:
    """Run one for a while, before ``server``, an entry of ``DATABASES``; skip the test where it is
    not installed."""
    program = find_pgbouncer()
    if program is None:
        raise SkipTest("pgbouncer is not installed")
    server, port = server or connections[ALIAS].settings_dict, free_port()
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder, "pgbouncer.ini")
        configuration.write_text(
            CONFIGURATION.format(
                host=server["HOST"], port=server["PORT"] or 5432, user=server["USER"],
                # An empty one is not understood.
                password=f" password={server['PASSWORD']}" if server["PASSWORD"] else "",
                listen=port, folder=folder,
            )
        )  # fmt: skip
        account = None
        if os.geteuid() == 0:  # It refuses to run as root.
            account = pwd.getpwnam("nobody")
            for path in (Path(folder), configuration):
                os.chown(path, account.pw_uid, account.pw_gid)
        pooler = Pooler([program, str(configuration)], port, account)
        try:
            yield pooler
        finally:
            pooler.kill()


def _await(port: int, running: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and running.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError("pgbouncer did not start")
