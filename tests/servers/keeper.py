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
from pathlib import Path
from typing import Any

#: Seconds for a server that has been told to end.
LEAVING = 20.0


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
        return (keep_background if plan["stop"] else keep)(plan, common)
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


def remove(folder: str) -> None:
    """Remove a server's folder, once the server has left it."""
    deadline = time.monotonic() + LEAVING
    while is_named_by_a_process(folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    shutil.rmtree(folder, ignore_errors=True)


def is_named_by_a_process(folder: str) -> bool:
    """Tell whether ``folder`` is in the command line of another process."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        if path.parent.name != str(os.getpid()):
            try:
                words = path.read_bytes()
            except OSError:
                continue
            if folder.encode() in words:
                return True
    return False


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(128 + signum))
    sys.exit(main())
