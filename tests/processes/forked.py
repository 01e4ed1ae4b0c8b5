"""Processes from the fork server, as the tests handle them."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

from . import proc

WORKSPACE = Path(__file__).resolve().parent.parent.parent
#: What processes of tests have of our environment.
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "PYTHONWARNINGS")


def environment(*paths: Path) -> dict[str, str]:
    """Return the environment of a process that imports from ``paths``, and what we do."""
    inherited = filter(None, [os.environ.get("PYTHONPATH")])
    return {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        "PYTHONPATH": os.pathsep.join([*map(str, paths), str(WORKSPACE), *inherited]),
    }


class ForkedProcess:
    """What ``subprocess.Popen`` would tell of a process that somebody else has started."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.birth = proc.birth(pid)
        self._status = status

    def poll(self) -> int | None:
        """Return the exit code; ``None``: it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, once there is one."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            # Without a status the server has ended, and its processes are nobody's.
            self.returncode = int(os.read(self._status, 16) or -signal.SIGKILL)
            os.close(self._status)
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            proc.send(self.pid, signal.SIGKILL, self.birth)


class ForkServer:
    """A process that is started when it is first asked, and serves all tests of a session."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.fork_server", str(theirs.fileno())],
                cwd=WORKSPACE,
                env=environment(),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def start(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        streams: Sequence[IO[Any]],
    ) -> ForkedProcess:
        """Run ``python -m COMMAND`` in a session of its own, with these streams as 0, 1 and 2."""
        order = {"command": command, "folder": str(folder), "environment": environment}
        descriptors = [stream.fileno() for stream in streams]
        status, theirs = os.pipe()
        try:
            socket.send_fds(self._socket, [json.dumps(order).encode()], [*descriptors, theirs])
        finally:
            os.close(theirs)
        answer = self._socket.recv(4)
        if not answer:
            raise AssertionError("the fork server has ended")
        return ForkedProcess(int.from_bytes(answer), status)

    def close(self) -> None:
        self._socket.close()
        self._process.wait(10)


@cache
def fork_server() -> ForkServer:
    """Return the server of this session, started when it is first wanted."""
    server = ForkServer()
    atexit.register(server.close)
    return server
