"""dj-queue: the other port of Solid Queue to Django."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.adapters import portable
from benchmarks.adapters.base import Capabilities
from benchmarks.databases import NAMES, Database
from benchmarks.options import Options

SETTINGS = """\
INSTALLED_APPS += ["dj_queue"]
TASKS = {
    "default": {
        "BACKEND": "dj_queue.backend.DjQueueBackend",
        "QUEUES": [],
        "OPTIONS": {
            "workers": [{"queues": QUEUES, "threads": THREADS, "processes": PROCESSES}],
        },
    },
}
"""


class DjQueue:
    """The latest release, with as many processes and threads as this project gets.

    Its polling interval is its default, 0.1 s, and on PostgreSQL it is woken.
    """

    name = "dj-queue"
    databases = NAMES
    elsewhere = ""
    capabilities = Capabilities(bulk=True, coroutine=True, results=True, queues=True, threads=True)
    note = "results stored; its own defaults for polling (0.1 s) and, on PostgreSQL, wake-up"

    def requirements(self, database: str) -> list[str]:
        return ["dj-queue"]

    def distributions(self, database: str) -> list[str]:
        return ["dj-queue", "Django"]

    def settings(self, database: Database, options: Options) -> str:
        return portable.QUIET + SETTINGS

    def files(self, options: Options) -> dict[str, str]:
        return {"jobs/tasks.py": portable.TASKS + portable.COROUTINE + portable.QUERY}

    def worker_commands(self, python: str, database: Database, options: Options) -> list[list[str]]:
        return [portable.manage(python, "dj_queue")]

    def prepare(self) -> None:
        portable.migrate()

    def fill(self, task: str, numbers: range) -> None:
        self.enqueue_many(task, numbers)

    def enqueuer(self, task: str) -> Callable[[int], object]:
        return portable.enqueuer(task)

    def enqueue_many(self, task: str, numbers: range) -> None:
        one = portable.task(task)
        one.get_backend().enqueue_all([(one, (number,), {}) for number in numbers])

    def unfinished(self, enqueued: int) -> int:
        # A job that failed has an execution for that, and none of these.
        places = [
            portable.scalar(f"SELECT count(*) FROM dj_queue_{place}_executions")
            for place in ("ready", "claimed")
        ]
        return sum(places)
