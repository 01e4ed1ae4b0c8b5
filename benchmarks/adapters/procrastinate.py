"""procrastinate: a queue for PostgreSQL outside of `django.tasks`, with a Django app."""

from __future__ import annotations

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
def noop() -> None:
    task_probe.mark()


@app.task
async def anoop() -> None:
    task_probe.mark()


@app.task
def stamp(sample: int) -> None:
    task_probe.stamp(sample)
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
        return 'INSTALLED_APPS += ["procrastinate.contrib.django"]\n'

    def files(self, options: Options) -> dict[str, str]:
        return {"jobs/tasks.py": TASKS}

    def worker_commands(self, python: str, database: Database, options: Options) -> list[list[str]]:
        command = portable.manage(python, "procrastinate", "worker")
        return [[*command, f"--concurrency={CONCURRENCY}"]] * options.processes

    def prepare(self) -> None:
        portable.migrate()

    def fill(self, task: str, count: int) -> None:
        self.enqueue_many(task, count)

    def enqueue(self, task: str, count: int) -> None:
        one = portable.task(task)
        for _ in range(count):
            one.defer()

    def enqueue_many(self, task: str, count: int) -> None:
        portable.task(task).batch_defer(*[{}] * count)

    def stamp(self, sample: int) -> None:
        portable.task("stamp").defer(sample=sample)

    def unfinished(self, enqueued: int) -> int:
        return portable.scalar(
            "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
        )
