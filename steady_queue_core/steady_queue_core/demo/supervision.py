"""The supervisor of the demo: ``manage.py steady_queue`` in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial

from ..processes.base import system
from .project import Project

#: Seconds that the supervisor may take to stop after TERM: its own patience, and some more.
PATIENCE = 12.0
#: Seconds that it may take to start a worker, and between two looks whether it has.
START, PERIOD = 15.0, 0.05


class Supervision:
    """A supervisor that was started."""

    def __init__(self, project: Project) -> None:
        sys.stdout.flush()  # The supervisor says what it runs on the same output.
        with project.supervisor_log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "manage.py", "steady_queue"],
                cwd=project.folder,
                stdin=subprocess.DEVNULL,
                stderr=log,
                # Ctrl-C is for us; we stop it. Should we be killed, the system does.
                start_new_session=True,
                preexec_fn=partial(system.signal_on_parent_death, os.getpid()),
            )

    def await_worker(self) -> None:
        """Wait until a worker is registered, so that the supervisor's banner comes first."""
        from ..models import Process

        deadline = time.monotonic() + START
        while time.monotonic() < deadline and self.exit_code is None:
            if Process.objects.filter(kind="worker").exists():
                return
            time.sleep(PERIOD)

    @property
    def exit_code(self) -> int | None:
        """How the supervisor ended; ``None``: it runs."""
        return self._process.poll()

    def stop(self) -> int:
        """Ask the supervisor to stop; return its exit code, which is negative for a signal."""
        self._process.terminate()
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            # Its processes end by themselves when it is gone.
            os.killpg(self._process.pid, signal.SIGKILL)
            return self._process.wait()

    def close(self) -> None:
        """Stop the supervisor, if it runs, and what it may have left."""
        if self.exit_code is None:
            self.stop()
            return
        with suppress(ProcessLookupError, PermissionError):
            # What it has left, if it was killed: that would end by itself, but write until then.
            os.killpg(self._process.pid, signal.SIGKILL)
