"""django-tasks-db: the database backend that grew up with Django's own tasks."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from benchmarks.adapters import portable
from benchmarks.adapters.base import Capabilities
from benchmarks.databases import NAMES, Database
from benchmarks.options import Options


class DjangoTasksDb:
    """The latest release; each worker process is a `db_worker` of one thread."""

    name = "django-tasks-db"
    databases = NAMES
    elsewhere = ""
    capabilities = Capabilities(coroutine=True, results=True)
    note = "one job at a time in each process; on SQLite an EXCLUSIVE transaction for every poll"

    def requirements(self, database: str) -> list[str]:
        return ["django-tasks-db"]

    def distributions(self, database: str) -> list[str]:
        return ["django-tasks-db", "Django"]

    def settings(self, database: Database, options: Options) -> str:
        return portable.QUIET + (
            'INSTALLED_APPS += ["django_tasks_db"]\n'
            'TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}\n'
        )

    def files(self, options: Options) -> dict[str, str]:
        return {"jobs/tasks.py": portable.TASKS + portable.COROUTINE}

    def worker_commands(self, python: str, database: Database, options: Options) -> list[list[str]]:
        command = portable.manage(
            python, "db_worker", "--no-startup-delay", "--no-reload", "--verbosity=0"
        )
        # 0 is accepted as well, but then the workers take turns to keep the database locked.
        command.append(f"--interval={options.poll}")
        return [command] * options.processes

    def prepare(self) -> None:
        portable.migrate()

    def fill(self, task: str, numbers: range) -> None:
        portable.fill(task, numbers)

    def enqueuer(self, task: str) -> Callable[[int], object]:
        return portable.enqueuer(task)

    def enqueue_many(self, task: str, numbers: range) -> None:
        raise portable.unsupported("no interface that enqueues many")

    def unfinished(self, enqueued: int) -> int:
        rows = import_module("django_tasks_db.models").DBTaskResult.objects
        return int(rows.filter(status__in=["READY", "RUNNING"]).count())
