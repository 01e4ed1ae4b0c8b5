"""How the floor is set up: with this project's migrations, and nothing else of it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from benchmarks.adapters import portable
from benchmarks.adapters.base import Capabilities
from benchmarks.adapters.floor.loop import Queue, open_queue
from benchmarks.adapters.steady_queue import SteadyQueue
from benchmarks.databases import NAMES, Database
from benchmarks.options import Options


class Floor:
    """Not a queue: the least that this project's way of storing jobs can cost."""

    name = "floor"
    databases = NAMES
    elsewhere = ""
    capabilities = Capabilities(bulk=True, results=True)
    note = "not a queue: this project's statements in a bare loop over the driver; polls"

    def __init__(self) -> None:
        self._opened: Queue | None = None

    def requirements(self, database: str) -> list[str]:
        return SteadyQueue().requirements(database)

    def distributions(self, database: str) -> list[str]:
        return ["steady-queue-core"]

    def settings(self, database: Database, options: Options) -> str:
        return 'INSTALLED_APPS += ["steady_queue_core"]\n'

    def files(self, options: Options) -> dict[str, str]:
        return {"jobs/tasks.py": ""}

    def worker_commands(self, python: str, database: Database, options: Options) -> list[list[str]]:
        command = [python, "-m", "benchmarks.adapters.floor"]
        return [[*command, str(options.poll)]] * options.processes

    def prepare(self) -> None:
        portable.migrate()

    def fill(self, task: str, numbers: range) -> None:
        self._queue().enqueue(f"jobs.tasks.{task}", numbers)

    def enqueuer(self, task: str) -> Callable[[int], object]:
        enqueue, path = self._queue().enqueue, f"jobs.tasks.{task}"
        return lambda number: enqueue(path, [number])

    def enqueue_many(self, task: str, numbers: range) -> None:
        self.fill(task, numbers)

    def unfinished(self, enqueued: int) -> int:
        return portable.scalar("SELECT count(*) FROM steady_queue_jobs WHERE finished_at IS NULL")

    def _queue(self) -> Queue:
        if self._opened is None:
            self._opened = open_queue(import_module("settings").DATABASES["default"])
        return self._opened
