"""oban: an asynchronous queue for PostgreSQL, outside of Django and its ORM."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from benchmarks.adapters import portable
from benchmarks.adapters.base import Capabilities
from benchmarks.databases import Database
from benchmarks.options import Options

LIMIT = 200
"""Jobs of the queue that a process runs at once, and claims: the fastest of 10, 50, 200 and 400."""

TASKS = '''\
"""The tasks of the benchmark."""

from __future__ import annotations

from benchmarks import task_probe
from oban import job


@job()
def noop(number: int) -> None:
    task_probe.mark(number)


@job()
async def anoop(number: int) -> None:
    task_probe.mark(number)


@job()
def stamp(number: int) -> None:
    task_probe.stamp(number)
'''

WORKER = '''\
"""A worker process, and what the client shares with it."""

from __future__ import annotations

import asyncio
import sys

import uvloop
from oban import Oban
from psycopg.conninfo import make_conninfo
from psycopg_pool import AsyncConnectionPool
from settings import DATABASES


async def connect() -> AsyncConnectionPool:
    login = DATABASES["default"]
    address = make_conninfo(
        host=login["HOST"],
        port=login["PORT"],
        user=login["USER"],
        password=login["PASSWORD"],
        dbname=login["NAME"],
    )
    return await Oban.create_pool(address)


async def work(limit: int) -> None:
    import jobs.tasks  # noqa: F401, it registers them

    async with Oban(pool=await connect(), queues={"default": limit}):
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(work(int(sys.argv[1])))
'''


class Oban:
    """The latest release: everything runs on the event loop of a process, functions as well."""

    name = "oban"
    databases = ("postgres",)
    elsewhere = "it is made for PostgreSQL alone"
    capabilities = Capabilities(bulk=True, coroutine=True)
    note = (
        f"keeps no results; {LIMIT} jobs at once in each process, functions on its event loop as "
        "well; LISTEN/NOTIFY"
    )

    def requirements(self, database: str) -> list[str]:
        return ["oban", "Django"]

    def distributions(self, database: str) -> list[str]:
        return ["oban", "psycopg"]

    def settings(self, database: Database, options: Options) -> str:
        return ""

    def files(self, options: Options) -> dict[str, str]:
        return {"jobs/tasks.py": TASKS, "jobs/worker.py": WORKER}

    def worker_commands(self, python: str, database: Database, options: Options) -> list[list[str]]:
        return [[python, "-m", "jobs.worker", str(LIMIT)]] * options.processes

    def prepare(self) -> None:
        _run(_install())

    def fill(self, task: str, numbers: range) -> None:
        self.enqueue_many(task, numbers)

    def enqueuer(self, task: str) -> Callable[[int], object]:
        queue, job = _queue(), portable.task(task)
        return lambda number: _run(queue.enqueue(job.new(number)))

    def enqueue_many(self, task: str, numbers: range) -> None:
        job = portable.task(task)
        _run(_queue().enqueue_many([job.new(number) for number in numbers]))

    def unfinished(self, enqueued: int) -> int:
        return portable.scalar(
            "SELECT count(*) FROM oban_jobs WHERE state NOT IN ('completed', 'discarded')"
        )


async def _install() -> None:
    async with await import_module("jobs.worker").connect() as pool:
        await import_module("oban.schema").install(pool)


@cache
def _queue() -> Any:
    """Return a client for the event loop of this process."""
    pool = _run(import_module("jobs.worker").connect())
    return import_module("oban").Oban(pool=pool)


@cache
def _loop() -> Any:
    return import_module("uvloop").new_event_loop()


def _run(call: Any) -> Any:
    return _loop().run_until_complete(call)
