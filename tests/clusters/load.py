"""What works on a cluster while faults happen: one enqueuer, and two supervisors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests import documents
from tests.older_code import OlderCode

from . import effects
from .acknowledgements import Acknowledgements
from .effects import Effect
from .waiting import wait_until

#: Seconds until the first jobs run, and until what is enqueued has run once the faults are over.
STARTING = 90.0
DRAINING = 90.0
LEAVING = 60.0


class Load:
    """Processes at the databases that are given, in a folder of their own."""

    def __init__(
        self,
        folder: Path,
        enqueuer: dict[str, Any],
        supervisors: Sequence[dict[str, Any]],
        code: OlderCode | None = None,
    ) -> None:
        self.folder = folder
        self._code = code
        folder.mkdir(parents=True)
        self._effects = folder / "effects"
        self._acknowledgements = folder / "acknowledgements"
        self._databases = (enqueuer, list(supervisors))
        self._enqueuer: subprocess.Popen[bytes] | None = None
        self.supervisors: list[subprocess.Popen[bytes]] = []
        #: When the fault began, and when there was another writer; by the monotonic clock.
        self.broken_at: int | None = None
        self.promoted_at: int | None = None

    def prepare(self) -> None:
        """Make the tables."""
        self._run("migrate", "--verbosity=0")

    def start(self) -> None:
        self._start_supervisors()
        self._start_enqueuer()
        self._wait(lambda: len(self.effects()) >= 100, "the first jobs")

    def upgrade(self) -> None:
        """Migrate under load, and go from the older code to today's, one process after another."""
        self._code = None
        self._run("migrate", "--verbosity=0")
        old = list(self.supervisors)
        workers = self._workers()
        self._start_supervisors()
        # The old ones work on until the new ones do.
        self._wait(lambda: len(self._workers() - workers) >= len(old), "the new workers")
        for each in old:
            each.send_signal(signal.SIGTERM)
            each.wait(LEAVING)
        if self._enqueuer is not None:
            self._enqueuer.terminate()
            self._enqueuer.wait(LEAVING)
        self._start_enqueuer()

    def _workers(self) -> set[int]:
        """Return the processes that have run something so far."""
        return {each.pid for each in self.effects()}

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, STARTING, f"{what}; see {self.folder}")

    def _start_supervisors(self) -> None:
        first = len(self.supervisors) + 1
        for number, database in enumerate(self._databases[1], start=first):
            name = f"supervisor{number}"
            words = ("-m", "django", "steady_queue", "--pidfile", str(self.folder / f"{name}.pid"))
            self.supervisors.append(self._begin(name, database, *words))

    def _start_enqueuer(self) -> None:
        acknowledgements = self.acknowledgements()
        first = max(acknowledgements.jobs, default=0) + 1
        words = ("-m", "tests.clusters.enqueuer", str(self._acknowledgements), str(first))
        self._enqueuer = self._begin("enqueuer", self._databases[0], *words)

    def run_for(self, seconds: float) -> None:
        """Let it work on."""
        time.sleep(seconds)

    def mark_fault(self) -> None:
        self.broken_at = time.monotonic_ns()

    def mark_promotion(self) -> None:
        self.promoted_at = time.monotonic_ns()

    def drain(self) -> None:
        """End the enqueuer, and wait until all that it was promised has run."""
        if self._enqueuer is not None:
            self._enqueuer.terminate()
            self._enqueuer.wait(LEAVING)
        numbers = set(self.acknowledgements().jobs)
        deadline = time.monotonic() + DRAINING
        while time.monotonic() < deadline:
            if numbers <= {each.number for each in self.effects() if each.event == "end"}:
                break
            time.sleep(0.2)

    def end(self) -> list[int]:
        """Stop the supervisors; return their exit codes."""
        for each in self.supervisors:
            if each.poll() is None:
                each.send_signal(signal.SIGTERM)
        return [each.wait(LEAVING) for each in self.supervisors]

    def close(self) -> None:
        """Kill what still runs."""
        for each in [*self.supervisors, self._enqueuer]:
            # Its group, which is there as long as one of its processes is.
            if each is not None:
                signal_group(each.pid, signal.SIGKILL)
                each.wait()

    def effects(self) -> list[Effect]:
        return effects.read(self._effects)

    def acknowledgements(self) -> Acknowledgements:
        return Acknowledgements.read(self._acknowledgements)

    def _environment(self, database: dict[str, Any]) -> dict[str, str]:
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.clusters.settings",
            "STEADY_QUEUE_CLUSTER": json.dumps(database),
            effects.VARIABLE: str(self._effects),
            **({"PYTHONPATH": os.pathsep.join(self._code.packages)} if self._code else {}),
        }

    def _run(self, *words: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "django", *words],
            check=True,
            cwd=documents.WORKSPACE,
            env=self._environment(self._databases[0]),
        )

    def _begin(self, name: str, database: dict[str, Any], *words: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=documents.WORKSPACE,
                env=self._environment(database),
                start_new_session=True,
            )


def signal_group(pid: int, signum: signal.Signals) -> None:
    """Signal a group of processes, if there is one left."""
    try:
        os.killpg(pid, signum)
    except ProcessLookupError:
        return
