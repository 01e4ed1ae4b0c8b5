"""The loop of the floor's workers, on whichever database."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from benchmarks import task_probe

if TYPE_CHECKING:
    # Installed in the floor's own environment, and not in that of the harness.
    from steady_queue_core.dialects import ProcessIdentity

BATCH = 500
"""Most jobs of one claim: as many as this project's worker claims of such short jobs."""

Row = Sequence[Any]
"""Of a claim: the job, its token, 2 more, its task, 1 more, its call."""
Outcome = tuple[int, int, str, str, float]
"""Job, token, workers, return value, start in seconds since 1970."""


class Queue(Protocol):
    """The statements on one connection."""

    def enqueue(self, task: str, numbers: Sequence[int]) -> None:
        """Insert a job with each number, in one transaction."""

    def register(self) -> ProcessIdentity:
        """Insert a worker process."""

    def any_ready(self) -> bool:
        """Look for a job, at the least cost."""

    def exchange(self, outcomes: list[Outcome], process: ProcessIdentity) -> Sequence[Row]:
        """Store the outcomes and claim the next batch, in one transaction."""


MODULES = {
    "django.db.backends.sqlite3": "sqlite",
    "django.db.backends.postgresql": "postgres",
    "django.db.backends.mysql": "mysql",
    "mysql.connector.django": "mysql",
}
"""By the engine of a database."""


def open_queue(settings: Mapping[str, Any]) -> Queue:
    """Connect to a database, with its entry of `DATABASES`."""
    module = import_module(f"benchmarks.adapters.floor.{MODULES[settings['ENGINE']]}")
    queue: Queue = module.connect(settings)
    return queue


def work(queue: Queue, poll: float) -> None:
    """Claim, run and settle until the process is ended."""
    process = queue.register()
    tasks: dict[str, Callable[..., object]] = {
        "jobs.tasks.noop": task_probe.mark,
        "jobs.tasks.stamp": task_probe.stamp,
    }
    worker = json.dumps([f"floor-{os.getpid()}"])
    outcomes: list[Outcome] = []
    while True:
        if not outcomes and not queue.any_ready():
            time.sleep(poll)
            continue
        claimed = queue.exchange(outcomes, process)
        outcomes = []
        for row in claimed:
            started = time.time()
            arguments, keywords = json.loads(row[6])
            value = tasks[row[4]](*arguments, **keywords)
            outcomes.append((row[0], row[1], worker, json.dumps(value), started))
