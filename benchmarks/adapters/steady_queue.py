"""This project, installed from the working tree: the core and the dialect of the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from benchmarks.adapters import portable
from benchmarks.adapters.base import Capabilities
from benchmarks.databases import NAMES, Database
from benchmarks.options import Options

DIALECTS = {name: "mysql" if name == "mariadb" else name for name in NAMES}

APP = """\
INSTALLED_APPS += ["steady_queue_core"]
TASKS = {"default": {"BACKEND": "steady_queue_core.backend.SteadyQueueBackend"}}
"""

WORKERS = """\
STEADY_QUEUE = {
    "workers": [{"queues": QUEUES, "threads": THREADS, "processes": PROCESSES}],
}
"""

TASK_PROCESSES = """\
STEADY_QUEUE = {
    "workers": [{"queues": QUEUES, "threads": PROCESSES, "executor": "processes"}],
}
"""

QUIET = """\
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "loggers": {
        "django.tasks": {"level": "WARNING"},
        "steady_queue.task": {"level": "WARNING"},
    },
}
"""

LIMITED = """

from steady_queue_core import limits_concurrency


@limits_concurrency(key="one", to=1)
@task
def one_key(number: int) -> int:
    return task_probe.mark(number)


@limits_concurrency(key=lambda number: str(number % 100), to=1)
@task
def hundred_keys(number: int) -> int:
    return task_probe.mark(number)
"""

OPTIONS = """

from datetime import timedelta

from steady_queue_core import Unique
from steady_queue_core import task as own_task


@own_task(metadata={"origin": "benchmark"})
def described(number: int) -> int:
    return task_probe.mark(number)


@limits_concurrency(key=lambda number: f"order {number}", to=3)
@own_task(
    unique=Unique(),
    expires=timedelta(days=1),
    timeout=timedelta(hours=1),
    retention=timedelta(days=1),
)
def optioned(number: int) -> int:
    return task_probe.mark(number)
"""

STOCK_DATABASE = 'DATABASES["default"].pop("OPTIONS")\n'


BASIC = Capabilities(bulk=True, coroutine=True, results=True)
"""What every variant is measured by; the first one also by the rest of what it can do."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to configure this project."""

    name: str
    note: str
    settings: str
    """In addition to the app and its backend."""
    capabilities: Capabilities = BASIC
    databases: Sequence[str] = NAMES
    elsewhere: str = ""


VARIANTS = (
    Variant(
        name="steady_queue",
        note="this working tree, with Django's own logging; results stored; its own defaults",
        settings=WORKERS,
        capabilities=replace(BASIC, queues=True, threads=True, limits=True),
    ),
    Variant(
        name="steady_queue-quiet",
        note="the same, with `django.tasks` and `steady_queue.task` at WARNING",
        settings=WORKERS + QUIET,
    ),
    Variant(
        name="steady_queue-forked",
        note="this working tree, with one worker that has 2 task processes",
        settings=TASK_PROCESSES,
    ),
    Variant(
        name="steady_queue-defaults",
        note="nothing set but the backend: one worker process, `synchronous=FULL`",
        settings=STOCK_DATABASE,
        databases=("sqlite",),
        elsewhere="on a server, only the number of workers would differ from steady_queue",
    ),
)


class SteadyQueue:
    """As a user runs it: the supervisor, its workers and a dispatcher, with their defaults."""

    def __init__(self, variant: Variant = VARIANTS[0]) -> None:
        self.name, self.note = variant.name, variant.note
        self.capabilities = variant.capabilities
        self.databases, self.elsewhere = variant.databases, variant.elsewhere
        self._settings = APP + variant.settings

    def requirements(self, database: str) -> list[str]:
        return ["./steady_queue_core", f"./steady_queue_{DIALECTS[database]}"]

    def distributions(self, database: str) -> list[str]:
        return ["steady-queue-core", f"steady-queue-{DIALECTS[database]}", "Django"]

    def settings(self, database: Database, options: Options) -> str:
        return self._settings

    def files(self, options: Options) -> dict[str, str]:
        tasks = portable.TASKS + portable.COROUTINE + portable.QUERY + LIMITED + OPTIONS
        return {"jobs/tasks.py": tasks}

    def worker_commands(self, python: str, database: Database, options: Options) -> list[list[str]]:
        return [portable.manage(python, "steady_queue")]

    def prepare(self) -> None:
        portable.migrate()

    def fill(self, task: str, numbers: range) -> None:
        self.enqueue_many(task, numbers)

    def enqueuer(self, task: str) -> Callable[[int], object]:
        return portable.enqueuer(task)

    def enqueue_many(self, task: str, numbers: range) -> None:
        from steady_queue_core import call, enqueue_many

        one = portable.task(task)
        enqueue_many([call(one, number) for number in numbers])

    def unfinished(self, enqueued: int) -> int:
        # A job that failed has its finished_at as well.
        return portable.scalar("SELECT count(*) FROM steady_queue_jobs WHERE finished_at IS NULL")
