"""A trial start of the new code, before the old one gives its place to it.

The trial runs the same command line in a process of its own, with a variable in its environment
that makes the command end, and report, where it would start the supervisor: settings, system
checks, task modules and tables have been looked at by then.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from ...printable import printable_lines
from ..base.forking import describe_exit
from .invocation import PASSED_ON, Invocation

#: Seconds that the new code gets to reach its start.
TIME_LIMIT = 60.0
#: Most characters of the trial's output that are logged.
MOST_OUTPUT = 8000
#: The variable in a trial's environment: the descriptor of the report.
VARIABLE = f"{PASSED_ON}TRIAL"


class Trial:
    """One trial start. Only ``reap``, of the process that started it, waits for its end."""

    def __init__(self, invocation: Invocation) -> None:
        """Start it. Raises ``OSError``."""
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # Closed by problem().
        self._reports, report = os.pipe()
        try:
            process = subprocess.Popen(
                invocation.arguments,
                env=invocation.environment_with(trial=str(report)),
                cwd=invocation.folder,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=[report],
            )
        except BaseException:
            os.close(self._reports)
            self._output.close()
            raise
        finally:
            os.close(report)
        self.pid = process.pid
        # We learn of its end by ourselves, as of that of all children.
        process.returncode = 0
        self._deadline = time.monotonic() + TIME_LIMIT
        self._has_overrun = False

    def check_time(self) -> None:
        """Kill it if its time is over."""
        if time.monotonic() > self._deadline:
            self._has_overrun = True
            self.kill()

    def poll(self) -> int | None:
        """Return its exit code if it has ended and nobody else has learned of that."""
        with suppress(ChildProcessError):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        return None

    def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def problem(self, exit_code: int, is_expected: Callable[[object], bool]) -> str:
        """Release what it needed; return why the new code cannot take over, or an empty text.

        ``exit_code``: how the process has ended; ``is_expected``: whether its report is right.
        """
        report = self._report()
        with self._output as output:
            output.seek(max(0, output.seek(0, os.SEEK_END) - MOST_OUTPUT))
            said = printable_lines(output.read().decode(errors="replace")).strip()
        if self._has_overrun:
            return f"It had not started after {TIME_LIMIT:g} seconds.\n{said}".strip()
        if exit_code != 0:
            return said or f"It {describe_exit(exit_code)}."
        if report is None:
            return f"It ended without a report: is it this version of Steady Queue?\n{said}".strip()
        if not is_expected(report):
            return (
                "It would not serve all databases that are served now, or would run threads in "
                f"place of processes or the other way round ({report!r}): stop the supervisor and "
                "start it again."
            )
        return ""

    def _report(self) -> object:
        # A process that the new code has left behind may hold the other end.
        os.set_blocking(self._reports, False)
        try:
            return json.loads(os.read(self._reports, MOST_OUTPUT))
        except (OSError, ValueError):
            return None
        finally:
            os.close(self._reports)


def is_trial() -> bool:
    """Whether this process is a trial start."""
    return VARIABLE in os.environ


def report(message: object) -> None:
    """Tell the supervisor that this code can start; ``message`` is JSON. In the trial."""
    with os.fdopen(int(os.environ[VARIABLE]), "w") as file:
        json.dump(message, file)
