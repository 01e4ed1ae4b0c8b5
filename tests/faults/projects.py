"""Projects whose code goes wrong on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from ..processes.harness import Project
from ..processes.waiting import wait_for
from ..servers.kinds import KINDS

T = TypeVar("T")

EXTRA = """
INSTALLED_APPS += ["tests.faults.app"]
TASKS["default"]["OPTIONS"] = {
    "middleware": ["tests.faults.app.tasks.Surrounding"],
    "error_reporter": "tests.faults.app.tasks.report",
    "payload": {"sign": True},
    "fair_queues": ["fair"],
}
TASKS["sharded"] = {
    "BACKEND": "steady_queue_core.sharding.ShardedBackend",
    "QUEUES": [],
    "OPTIONS": {"shards": ["default"], "key": "tests.faults.app.calls.shard_of_call"},
}
# What Django logs of failed tasks is not of interest here.
for logger in ("django.tasks", "django_tasks"):
    LOGGING["loggers"][logger] = {"level": "CRITICAL", "propagate": False}
"""
HEARTBEAT = 0.5
WORKER = {"processes": 1, "threads": 3, "polling_interval": 0.02}
QUEUE = {
    "dispatchers": [{"polling_interval": 0.05}],
    "scheduler": {"dynamic_tasks_enabled": True, "polling_interval": 0.5},
    "process_heartbeat_interval": HEARTBEAT,
}
MODULES = ("tests.faultapp.tasks", "tests.faults.app.tasks")
#: Seconds that something may take at the most, on a machine with much else to do.
PATIENCE = 10.0


@contextmanager
def project(
    database: str, executor: str = "threads", modules: Sequence[str] = MODULES, mutant: str = ""
) -> Iterator[Project]:
    """Make a project on a database: ``"sqlite"``, or the alias of a server that is named by the
    environment."""
    server = None if database == "sqlite" else KINDS[database].given()
    workers = [{**WORKER, "executor": executor}]
    queue = {**QUEUE, "workers": workers, "task_modules": list(modules)}
    with (
        TemporaryDirectory() as folder,
        closing(Project(Path(folder), None, queue, EXTRA, server=server)) as made,
    ):
        made.mutant = mutant
        if server is None:
            made.migrate()
        yield made


def comes_true(condition: Callable[[], T], seconds: float = PATIENCE) -> T | None:
    """Return the first true value of a condition; ``None``: there was none."""
    with suppress(AssertionError):
        return wait_for(condition, seconds)
    return None
