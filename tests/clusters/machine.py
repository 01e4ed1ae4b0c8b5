"""A machine of the network, with all the processes that run on it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from .namespaces import Namespaces

#: Seconds until all processes have got a signal, or have ended.
PATIENCE = 60
Command = list[str | Path]


class Machine:
    """Programs in one namespace, under the account of the server."""

    def __init__(self, network: Namespaces, number: int, account: str | None, folder: Path) -> None:
        self.host = network.address(number)
        self.folder = folder
        self._network = network
        self._number = number
        self._account = account

    def run(
        self, name: str, command: Command, environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """Start a program whose output goes to a file of its name."""
        # ip needs root, so that the account cannot be changed before it.
        become = [
            "setpriv",
            f"--reuid={self._account}",
            f"--regid={self._account}",
            "--clear-groups",
        ]
        with (self.folder / f"{name}.log").open("ab") as output:
            return subprocess.Popen(
                [
                    *self._network.inside(self._number),
                    *(become if self._account else []),
                    *command,
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={
                    **_inherited(),
                    "HOME": str(self.folder),
                    "TMPDIR": str(self.folder),
                    **environment,
                },
                # Ctrl-C in a terminal is for the tests.
                start_new_session=True,
            )

    def kill(self) -> None:
        """Lose its power: all processes, until there is none."""
        deadline = time.monotonic() + PATIENCE
        while self._signal(signal.SIGKILL):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.host}: its processes do not end")
            time.sleep(0.05)

    def freeze(self) -> None:
        """Stop all processes, those too that begin meanwhile."""
        stopped = -1
        while (found := self._signal(signal.SIGSTOP)) != stopped:
            stopped = found

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> int:
        """Signal all processes; return how many there are."""
        found = self._network.processes(self._number)
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return len(found)


def _inherited() -> dict[str, str]:
    # What concerns our own Python does not concern that of a node.
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
