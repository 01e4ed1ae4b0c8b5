"""Keeps one server as long as somebody holds the other end of its standard input.

Run as ``python keeper.py JSON``, with a plan's commands and what ``private`` adds to them. However
the holder ends, even by SIGKILL, the server is ended too, and its folder removed. The output of
all commands is the keeper's.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

#: Seconds for a server that has been told to end.
LEAVING = 20.0
#: Where the pid of a server is found whose end is not the end of its keeper.
PID_FILE = "server.pid"


def main() -> int:
    plan = json.loads(sys.argv[1])
    folder = plan["folder"]
    environment = {**os.environ, "TMPDIR": folder, "HOME": folder, "LC_ALL": "C"}
    common = {"cwd": folder, "env": environment, "stdin": subprocess.DEVNULL, **plan["identity"]}
    try:
        prepared = not plan["prepare"] or any(
            subprocess.run(command, check=False, **common).returncode == 0
            for command in plan["prepare"]
        )
        if not prepared:
            return 1
        if plan["stop"]:
            return keep_background(plan, common)
        return (keep_successors if plan.get("mortal") else keep)(plan, common)
    finally:
        remove(folder)


def keep(plan: dict[str, Any], common: dict[str, Any]) -> int:
    """Run a server that is the program ``serve``."""
    server = subprocess.Popen(plan["serve"], **common)

    def end_with_input() -> None:
        sys.stdin.read()
        server.send_signal(plan["signal"])

    threading.Thread(target=end_with_input, daemon=True).start()
    try:
        return server.wait()
    finally:
        if server.poll() is None:
            server.send_signal(plan["signal"])
            server.wait()


def keep_background(plan: dict[str, Any], common: dict[str, Any]) -> int:
    """Run a server that the program ``serve`` has left in the background."""
    if status := subprocess.run(plan["serve"], check=False, **common).returncode:
        return status
    try:
        sys.stdin.read()
    finally:
        subprocess.run(plan["stop"], check=False, **common)
    return 0


def keep_successors(plan: dict[str, Any], common: dict[str, Any]) -> int:
    """Run a server that may end before its time; its holder may then start another one in the
    same folder, and puts its pid into the file."""
    server = subprocess.Popen(plan["serve"], **common)
    file = Path(plan["folder"], PID_FILE)
    file.write_text(str(server.pid))
    # A successor must not take it for alive.
    threading.Thread(target=server.wait, daemon=True).start()
    try:
        sys.stdin.read()
    finally:
        pid = int(file.read_text())
        if str(pid) in processes_that_name(plan["folder"]):
            os.kill(pid, plan["signal"])
            os.kill(pid, signal.SIGCONT)
        server.wait()
    return 0


def remove(folder: str) -> None:
    """Remove a server's folder, once the server has left it."""
    deadline = time.monotonic() + LEAVING
    while processes_that_name(folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    shutil.rmtree(folder, ignore_errors=True)


def processes_that_name(folder: str) -> set[str]:
    """Return the pids of the other processes that have ``folder`` in their command line."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if folder.encode() in path.read_bytes():
                found.add(path.parent.name)
    return found - {str(os.getpid())}


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(128 + signum))
    sys.exit(main())
