"""This project, installed from the working tree: the core and the dialect of the database."""

from __future__ import annotations

from benchmarks.adapters import portable
from benchmarks.adapters.base import Capabilities
from benchmarks.databases import NAMES, Database
from benchmarks.options import Options

DIALECTS = {name: "mysql" if name == "mariadb" else name for name in NAMES}

SETTINGS = """\
INSTALLED_APPS += ["steady_queue_core"]
TASKS = {{"default": {{"BACKEND": "steady_queue_core.backend.SteadyQueueBackend", "QUEUES": []}}}}
STEADY_QUEUE = {{
    "workers": [{{"queues": ["*"], "threads": {threads}, "processes": {processes}}}],
}}
"""


class SteadyQueue:
    """As a user runs it: the supervisor, its workers and a dispatcher, with their defaults."""

    name = "steady_queue"
    databases = NAMES
    elsewhere = ""
    capabilities = Capabilities(bulk=True, coroutine=True, results=True)
    note = "this working tree; results stored; its own defaults for polling and wake-up"

    def requirements(self, database: str) -> list[str]:
        return ["./steady_queue_core", f"./steady_queue_{DIALECTS[database]}"]

    def distributions(self, database: str) -> list[str]:
        return ["steady-queue-core", f"steady-queue-{DIALECTS[database]}", "Django"]

    def settings(self, database: Database, options: Options) -> str:
        return SETTINGS.format(threads=options.threads, processes=options.processes)

    def files(self, options: Options) -> dict[str, str]:
        return {"jobs/tasks.py": portable.TASKS + portable.COROUTINE}

    def worker_commands(self, python: str, database: Database, options: Options) -> list[list[str]]:
        return [portable.manage(python, "steady_queue")]

    def prepare(self) -> None:
        portable.migrate()

    def fill(self, task: str, count: int) -> None:
        portable.fill(task, count)

    def enqueue(self, task: str, count: int) -> None:
        portable.enqueue(task, count)

    def enqueue_many(self, task: str, count: int) -> None:
        from steady_queue_core import call, enqueue_many

        enqueue_many([call(portable.task(task))] * count)

    def stamp(self, sample: int) -> None:
        portable.stamp(sample)

    def unfinished(self, enqueued: int) -> int:
        # A job that failed has its finished_at as well.
        return portable.scalar("SELECT count(*) FROM steady_queue_jobs WHERE finished_at IS NULL")
