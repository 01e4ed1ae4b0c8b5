"""pgqueuer: an asynchronous queue for PostgreSQL, outside of Django and its ORM."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks.adapters import portable
from benchmarks.adapters.base import Capabilities
from benchmarks.databases import Database
from benchmarks.options import Options

BATCH = 400
"""Jobs of one claim: the fastest of 50, 100, 200 and 400. Its default is 10."""

# Its own command, `pgq run`, ends in an error with the present release of a library.
WORKER = '''\
"""The tasks of the benchmark, and their runner."""

from __future__ import annotations

import asyncio
import sys

import asyncpg
import uvloop
from benchmarks import task_probe
from pgqueuer import PgQueuer
from pgqueuer.models import Job
from settings import DATABASES


async def connect() -> asyncpg.Connection:
    login = DATABASES["default"]
    return await asyncpg.connect(
        host=login["HOST"],
        port=login["PORT"],
        user=login["USER"],
        password=login["PASSWORD"],
        database=login["NAME"],
    )


async def work(batch: int) -> None:
    queue = PgQueuer.from_asyncpg_connection(await connect())

    @queue.entrypoint("noop")
    async def noop(job: Job) -> None:
        await asyncio.to_thread(task_probe.mark, int(job.payload))

    @queue.entrypoint("anoop")
    async def anoop(job: Job) -> None:
        task_probe.mark(int(job.payload))

    @queue.entrypoint("stamp")
    async def stamp(job: Job) -> None:
        task_probe.stamp(int(job.payload))

    await queue.run(batch_size=batch)


if __name__ == "__main__":
    uvloop.run(work(int(sys.argv[1])))
'''


class Pgqueuer:
    """The latest release on asyncpg; synchronous tasks in threads, as its documentation says."""

    name = "pgqueuer"
    databases = ("postgres",)
    elsewhere = "it is made for PostgreSQL alone"
    capabilities = Capabilities(bulk=True, coroutine=True)
    note = f"keeps no results: rows of ended jobs go to a log; {BATCH} jobs a claim; LISTEN/NOTIFY"

    def requirements(self, database: str) -> list[str]:
        return ["pgqueuer[asyncpg]", "Django"]

    def distributions(self, database: str) -> list[str]:
        return ["pgqueuer", "asyncpg"]

    def settings(self, database: Database, options: Options) -> str:
        return ""

    def files(self, options: Options) -> dict[str, str]:
        return {"jobs/worker.py": WORKER}

    def worker_commands(self, python: str, database: Database, options: Options) -> list[list[str]]:
        return [[python, "-m", "jobs.worker", str(BATCH)]] * options.processes

    def prepare(self) -> None:
        asyncio.run(_install())

    def fill(self, task: str, numbers: range) -> None:
        self.enqueue_many(task, numbers)

    def enqueuer(self, task: str) -> Callable[[int], object]:
        queries = _queries()
        return lambda number: queries.enqueue(task, _payload(number))

    def enqueue_many(self, task: str, numbers: range) -> None:
        payloads = [_payload(number) for number in numbers]
        _queries().enqueue([task] * len(numbers), payloads, [0] * len(numbers))

    def unfinished(self, enqueued: int) -> int:
        return portable.scalar("SELECT count(*) FROM pgqueuer")


def _payload(number: int) -> bytes:
    return b"%d" % number


async def _install() -> None:
    connection = await import_module("jobs.worker").connect()
    driver = import_module("pgqueuer.db").AsyncpgDriver(connection)
    await import_module("pgqueuer.queries").Queries(driver).install()
    await connection.close()


def _queries() -> Any:
    """Return a client for synchronous code, on Django's connection in autocommit mode."""
    from django.db import connection

    connection.ensure_connection()
    driver = import_module("pgqueuer.db").SyncPsycopgDriver(connection.connection)
    return import_module("pgqueuer.queries").SyncQueries(driver)
