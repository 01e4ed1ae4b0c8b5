"""steady-queue 0.3.0: the port of Solid Queue whose interface this project takes over."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from benchmarks.adapters import portable
from benchmarks.adapters.base import Capabilities
from benchmarks.databases import NAMES, Database
from benchmarks.options import Options


class SteadyQueue030:
    """The release 0.3.0, with as many processes and threads as this project gets.

    Its polling interval is its default, 0.1 s: a shorter one gains nothing in a drain (its threads
    wake it) and costs locks that the other process waits for.
    """

    name = "steady-queue-0.3.0"
    databases = NAMES
    elsewhere = ""
    capabilities = Capabilities()
    note = (
        "stores no results; on SQLite given transaction_mode IMMEDIATE, without which two workers"
        " stall in 'database is locked'"
    )

    def requirements(self, database: str) -> list[str]:
        return ["steady-queue==0.3.0"]

    def distributions(self, database: str) -> list[str]:
        return ["steady-queue", "Django"]

    def settings(self, database: Database, options: Options) -> str:
        immediate = 'DATABASES["default"]["OPTIONS"]["transaction_mode"] = "IMMEDIATE"\n'
        return (
            "from steady_queue.configuration import Configuration\n\n"
            'INSTALLED_APPS += ["steady_queue"]\n'
            + portable.QUIET
            + (immediate if database.alias == "sqlite" else "")
            + 'TASKS = {"default": {"BACKEND": "steady_queue.backend.SteadyQueueBackend"}}\n'
            "STEADY_QUEUE = Configuration.Options(\n"
            "    workers=[\n"
            "        Configuration.Worker(\n"
            "            threads=THREADS,\n"
            "            processes=PROCESSES,\n"
            "        )\n"
            "    ]\n"
            ")\n"
        )

    def files(self, options: Options) -> dict[str, str]:
        return {"jobs/tasks.py": portable.TASKS}

    def worker_commands(self, python: str, database: Database, options: Options) -> list[list[str]]:
        return [portable.manage(python, "steady_queue")]

    def prepare(self) -> None:
        portable.migrate()

    def fill(self, task: str, numbers: range) -> None:
        portable.fill(task, numbers)

    def enqueuer(self, task: str) -> Callable[[int], object]:
        return portable.enqueuer(task)

    def enqueue_many(self, task: str, numbers: range) -> None:
        raise portable.unsupported("no interface that enqueues many")

    def unfinished(self, enqueued: int) -> int:
        models = import_module("steady_queue.models")
        waiting = models.Job.objects.filter(finished_at=None).count()
        return int(waiting - models.FailedExecution.objects.count())
