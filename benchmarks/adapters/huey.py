"""huey: a small queue with an SQLite file of its own, outside of the ORM."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks.adapters import portable
from benchmarks.adapters.base import Capabilities
from benchmarks.databases import Database
from benchmarks.options import Options

TASKS = '''\
"""The tasks of the benchmark."""

from __future__ import annotations

from benchmarks import task_probe
from huey.contrib.djhuey import task


@task()
def noop(number: int) -> int:
    return task_probe.mark(number)


@task()
def stamp(number: int) -> None:
    task_probe.stamp(number)
'''

STORAGE = '''\
"""huey's storage, with the same durability as every other competitor gets.

huey knows `synchronous` OFF and FULL, but not NORMAL.
"""

from __future__ import annotations

from huey.api import Huey
from huey.storage import SqliteStorage


class Storage(SqliteStorage):
    def _create_connection(self):
        connection = super()._create_connection()
        connection.execute("PRAGMA synchronous = {synchronous}")
        return connection


class BenchmarkHuey(Huey):
    storage_class = Storage
'''


class Huey:
    """The latest release, SqliteHuey with process workers; once with results and once without."""

    databases = ("sqlite",)
    elsewhere = "of the databases here it has a storage for SQLite alone"

    def __init__(self, *, results: bool) -> None:
        self.name = "huey" if results else "huey-no-results"
        self.capabilities = Capabilities(results=results)
        kept = "results stored" if results else "no results stored"
        self.note = f"SqliteHuey, {kept}; a job is deleted before it runs: lost if its worker dies"

    def requirements(self, database: str) -> list[str]:
        return ["huey", "Django"]

    def distributions(self, database: str) -> list[str]:
        return ["huey", "Django"]

    def settings(self, database: Database, options: Options) -> str:
        return portable.QUIET + (
            'INSTALLED_APPS += ["huey.contrib.djhuey"]\n'
            "HUEY = {\n"
            '    "huey_class": "jobs.storage.BenchmarkHuey",\n'
            '    "name": "benchmark",\n'
            f'    "results": {self.capabilities.results},\n'
            '    "immediate": False,\n'
            f'    "connection": {{"filename": {database.settings()["NAME"]!r}}},\n'
            "}\n"
        )

    def files(self, options: Options) -> dict[str, str]:
        storage = STORAGE.replace("{synchronous}", options.synchronous)
        return {"jobs/tasks.py": TASKS, "jobs/storage.py": storage}

    def worker_commands(self, python: str, database: Database, options: Options) -> list[list[str]]:
        poll = str(options.poll)
        command = portable.manage(python, "run_huey", "--quiet", "--no-periodic")
        command += ["--worker-type=process", f"--workers={options.processes}"]
        return [[*command, f"--delay={poll}", f"--max-delay={poll}", "--backoff=1"]]

    def prepare(self) -> None:
        portable.task("noop")

    def fill(self, task: str, numbers: range) -> None:
        storage = self._huey().storage
        function = portable.task(task)
        rows = [(self._huey().serialize_task(function.s(number)),) for number in numbers]
        with storage.db(commit=True) as cursor:
            cursor.executemany(
                "INSERT INTO task (queue, data, priority) VALUES ('benchmark', ?, 0)", rows
            )

    def enqueuer(self, task: str) -> Callable[[int], object]:
        function: Callable[[int], object] = portable.task(task)
        return function

    def enqueue_many(self, task: str, numbers: range) -> None:
        raise portable.unsupported("no interface that enqueues many")

    def unfinished(self, enqueued: int) -> int:
        if self.capabilities.results:
            return enqueued - int(self._huey().storage.result_store_size())
        return int(self._huey().storage.queue_size())

    def _huey(self) -> Any:
        return import_module("huey.contrib.djhuey").HUEY
