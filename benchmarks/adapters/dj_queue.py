"""dj-queue: the other port of Solid Queue to Django."""

from __future__ import annotations

from benchmarks.adapters import portable
from benchmarks.adapters.base import Capabilities
from benchmarks.databases import NAMES, Database
from benchmarks.options import Options

SETTINGS = """\
INSTALLED_APPS += ["dj_queue"]
TASKS = {{
    "default": {{
        "BACKEND": "dj_queue.backend.DjQueueBackend",
        "QUEUES": [],
        "OPTIONS": {{
            "workers": [{{"queues": ["*"], "threads": {threads}, "processes": {processes}}}],
        }},
    }},
}}
"""


class DjQueue:
    """The latest release, with as many processes and threads as this project gets.

    Its polling interval is its default, 0.1 s, and on PostgreSQL it is woken.
    """

    name = "dj-queue"
    databases = NAMES
    elsewhere = ""
    capabilities = Capabilities(bulk=True, coroutine=True, results=True)
    note = "results stored; its own defaults for polling (0.1 s) and, on PostgreSQL, wake-up"

    def requirements(self, database: str) -> list[str]:
        return ["dj-queue"]

    def distributions(self, database: str) -> list[str]:
        return ["dj-queue", "Django"]

    def settings(self, database: Database, options: Options) -> str:
        return SETTINGS.format(threads=options.threads, processes=options.processes)

    def files(self, options: Options) -> dict[str, str]:
        return {"jobs/tasks.py": portable.TASKS + portable.COROUTINE}

    def worker_commands(self, python: str, database: Database, options: Options) -> list[list[str]]:
        return [portable.manage(python, "dj_queue")]

    def prepare(self) -> None:
        portable.migrate()

    def fill(self, task: str, count: int) -> None:
        self.enqueue_many(task, count)

    def enqueue(self, task: str, count: int) -> None:
        portable.enqueue(task, count)

    def enqueue_many(self, task: str, count: int) -> None:
        one = portable.task(task)
        one.get_backend().enqueue_all([(one, (), {})] * count)

    def stamp(self, sample: int) -> None:
        portable.stamp(sample)

    def unfinished(self, enqueued: int) -> int:
        # A job that failed has an execution for that, and none of these.
        places = [
            portable.scalar(f"SELECT count(*) FROM dj_queue_{place}_executions")
            for place in ("ready", "claimed")
        ]
        return sum(places)
