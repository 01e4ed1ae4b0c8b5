"""procrastinate: a queue for PostgreSQL outside of `django.tasks`, with a Django app."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.adapters import portable
from benchmarks.adapters.base import Capabilities
from benchmarks.databases import Database
from benchmarks.options import Options

CONCURRENCY = 10
"""Jobs that a worker runs at once: with one alone it waits for each of its statements in turn."""

TASKS = '''\
"""The tasks of the benchmark."""

from __future__ import annotations

from benchmarks import task_probe
from procrastinate.contrib.django import app


@app.task
def noop(number: int) -> None:
    task_probe.mark(number)


@app.task
async def anoop(number: int) -> None:
    task_probe.mark(number)


@app.task
def stamp(number: int) -> None:
    task_probe.stamp(number)
'''


class Procrastinate:
    """The latest release: asynchronous workers, which run synchronous tasks in threads."""

    name = "procrastinate"
    databases = ("postgres",)
    elsewhere = "it is made for PostgreSQL alone"
    capabilities = Capabilities(bulk=True, coroutine=True)
    note = f"keeps no results; {CONCURRENCY} jobs at once in each process; LISTEN/NOTIFY"

    def requirements(self, database: str) -> list[str]:
        return ["procrastinate[django]", "Django"]

    def distributions(self, database: str) -> list[str]:
        return ["procrastinate", "Django"]

    def settings(self, database: Database, options: Options) -> str:
        return portable.QUIET + 'INSTALLED_APPS += ["procrastinate.contrib.django"]\n'

    def files(self, options: Options) -> dict[str, str]:
        return {"jobs/tasks.py": TASKS}

    def worker_commands(self, python: str, database: Database, options: Options) -> list[list[str]]:
        command = portable.manage(python, "procrastinate", "worker")
        return [[*command, f"--concurrency={CONCURRENCY}"]] * options.processes

    def prepare(self) -> None:
        portable.migrate()

    def fill(self, task: str, numbers: range) -> None:
        self.enqueue_many(task, numbers)

    def enqueuer(self, task: str) -> Callable[[int], object]:
        defer = portable.task(task).defer
        return lambda number: defer(number=number)

    def enqueue_many(self, task: str, numbers: range) -> None:
        portable.task(task).batch_defer(*({"number": number} for number in numbers))

    def unfinished(self, enqueued: int) -> int:
        return portable.scalar(
            "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
        )
