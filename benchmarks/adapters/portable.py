"""Functions that adapters of queues behind `django.tasks` share."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

TASKS = '''\
"""The tasks of the benchmark."""

from __future__ import annotations

import time

from benchmarks import task_probe
from django.db import connection
from django.tasks import task


@task
def noop(number: int) -> int:
    return task_probe.mark(number)


@task
def stamp(number: int) -> None:
    task_probe.stamp(number)
'''

COROUTINE = """

@task
async def anoop(number: int) -> int:
    return task_probe.mark(number)
"""
QUERY = """

@task
def query(number: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    time.sleep(0.005)
    return task_probe.mark(number)
"""
"""A short task that asks the database something and then waits for something else."""

QUIET = """\
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {"django.tasks": {"level": "WARNING"}},
}
"""
"""For other queues: nobody makes a record for each job."""


def task(name: str) -> Any:
    """Return the task object of that name."""
    return getattr(import_module("jobs.tasks"), name)


def migrate() -> None:
    """Run the migrations of the project."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)


def fill(name: str, numbers: range) -> None:
    """Enqueue one by one, but commit once."""
    from django.db import transaction

    one = task(name)
    with transaction.atomic():
        for number in numbers:
            one.enqueue(number)


def enqueuer(name: str) -> Callable[[int], object]:
    """Return what enqueues one job, in autocommit mode."""
    one: Callable[[int], object] = task(name).enqueue
    return one


def scalar(sql: str) -> int:
    """Return the single number that the query selects."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(sql)
        row = cursor.fetchone()
    return int(row[0])


def manage(python: str, *arguments: str) -> list[str]:
    """Return the command that runs a management command of the project."""
    return [python, "manage.py", *arguments]


def unsupported(what: str) -> NotImplementedError:
    """Return the error of an adapter whose competitor cannot do this."""
    return NotImplementedError(what)
