"""django-ox: claims rows of one table, one by one, by lease."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from benchmarks.adapters import portable
from benchmarks.adapters.base import Capabilities
from benchmarks.databases import NAMES, Database
from benchmarks.options import Options


class DjangoOx:
    """The latest release: one supervisor, as many processes and threads as this project gets."""

    name = "django-ox"
    databases = NAMES
    elsewhere = ""
    capabilities = Capabilities(bulk=True, coroutine=True, results=True)
    note = "results stored; polls at the interval of `--poll`, its own default is 1 s"

    def requirements(self, database: str) -> list[str]:
        return ["django-ox"]

    def distributions(self, database: str) -> list[str]:
        return ["django-ox", "Django"]

    def settings(self, database: Database, options: Options) -> str:
        return portable.QUIET + (
            'INSTALLED_APPS += ["django_ox"]\n'
            'TASKS = {"default": {"BACKEND": "django_ox.backend.OxBackend", "QUEUES": []}}\n'
        )

    def files(self, options: Options) -> dict[str, str]:
        return {"jobs/tasks.py": portable.TASKS + portable.COROUTINE}

    def worker_commands(self, python: str, database: Database, options: Options) -> list[list[str]]:
        command = portable.manage(python, "ox_worker", f"--interval={options.poll}")
        places = [f"--processes={options.processes}", f"--concurrency={options.threads}"]
        return [[*command, *places]]

    def prepare(self) -> None:
        portable.migrate()

    def fill(self, task: str, numbers: range) -> None:
        self.enqueue_many(task, numbers)

    def enqueuer(self, task: str) -> Callable[[int], object]:
        return portable.enqueuer(task)

    def enqueue_many(self, task: str, numbers: range) -> None:
        calls = [((number,), {}) for number in numbers]
        import_module("django_ox.bulk").enqueue_many(portable.task(task), calls)

    def unfinished(self, enqueued: int) -> int:
        rows = import_module("django_ox.models").OxTask.objects
        return int(rows.filter(status__in=["READY", "RUNNING", "WAITING"]).count())
