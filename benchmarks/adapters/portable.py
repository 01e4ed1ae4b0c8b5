"""Functions that adapters of queues behind `django.tasks` share."""

from __future__ import annotations

from importlib import import_module
from typing import Any

TASKS = '''\
"""The tasks of the benchmark."""

from __future__ import annotations

from benchmarks import task_probe
from django.tasks import task


@task
def noop() -> int:
    return task_probe.mark()


@task
def stamp(sample: int) -> None:
    task_probe.stamp(sample)
'''

COROUTINE = """

@task
async def anoop() -> int:
    return task_probe.mark()
"""


def task(name: str) -> Any:
    """Return the task object of that name."""
    return getattr(import_module("jobs.tasks"), name)


def migrate() -> None:
    """Run the migrations of the project."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)


def fill(name: str, count: int) -> None:
    """Enqueue one by one, but commit once."""
    from django.db import transaction

    one = task(name)
    with transaction.atomic():
        for _ in range(count):
            one.enqueue()


def enqueue(name: str, count: int) -> None:
    """Enqueue one by one, in autocommit mode."""
    one = task(name)
    for _ in range(count):
        one.enqueue()


def stamp(sample: int) -> None:
    """Enqueue one job that notes the time at which it starts."""
    task("stamp").enqueue(sample)


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
