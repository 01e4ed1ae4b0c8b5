"""Calls that go wrong before they are stored, and what enqueues them in each way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import count
from typing import Any

from django.apps import apps
from django.db import connection, transaction

from steady_queue_core import (
    Batch,
    Unique,
    call,
    enqueue_many,
    limits_concurrency,
    limits_rate,
    task,
)  # fmt: skip
from steady_queue_core.compat import InvalidTask

from .switch import trip

_numbers = count()


def key_at(place: str) -> Callable[[int], str]:
    """Return a callable of a key that goes wrong at a place."""

    def key(number: int) -> str:
        trip(place)
        return str(number)

    return key


def shard_of_call(task: Any, args: Sequence[Any], kwargs: Any) -> str:
    trip("shard function")
    return str(args[0])


@task
def plain(number: int) -> None:
    pass


@task(queue_name="faulty")
def faulty(number: int) -> None:
    pass


@limits_concurrency(key=key_at("concurrency key"))
@task
def limited(number: int) -> None:
    pass


@task(unique=Unique(key=key_at("unique key")))
def unique(number: int) -> None:
    pass


@limits_rate(key=key_at("rate key"), to=1000, per=timedelta(seconds=1))
@task
def rated(number: int) -> None:
    pass


@task(queue_name="fair", fair_key=key_at("fair key"))
def fair(number: int) -> None:
    pass


@task(backend="sharded", shard_key=key_at("shard key"))
def sharded_by_itself(number: int) -> None:
    pass


@task(backend="sharded")
def sharded(number: int) -> None:
    pass


def _alone(chosen: Any) -> None:
    chosen.enqueue(next(_numbers))


def _in_bulk(chosen: Any) -> None:
    tasks = [plain, chosen, plain]
    enqueue_many(call(each, next(_numbers)) for each in tasks)


def _in_batch(chosen: Any) -> None:
    with Batch("of two"):
        plain.enqueue(next(_numbers))
        chosen.enqueue(next(_numbers))


def _in_transaction(chosen: Any) -> None:
    """Go on in a transaction after an error, as long as there is none in the database."""
    with transaction.atomic():
        try:
            chosen.enqueue(next(_numbers))
        except BaseException as error:
            caught: BaseException | None = error
        else:
            caught = None
        plain.enqueue(next(_numbers))
    if caught is not None:
        raise caught


WAYS: dict[str, Callable[[Any], None]] = {
    "alone": _alone, "in bulk": _in_bulk, "in a batch": _in_batch,
    "in a transaction": _in_transaction,
}  # fmt: skip


def enqueue(name: str, way: str) -> tuple[str, dict[str, int]]:
    """Enqueue a task in a way; return the name of the error, and how many rows there are more in
    each table."""
    before, raised = _rows(), ""
    try:
        WAYS[way](globals()[name])
    except BaseException as error:
        raised = "InvalidTask" if isinstance(error, InvalidTask) else type(error).__name__
    after = _rows()
    return raised, {table: more for table in after if (more := after[table] - before[table])}


def _rows() -> dict[str, int]:
    tables = [each._meta.db_table for each in apps.get_app_config("steady_queue").get_models()]
    with connection.cursor() as cursor:
        cursor.execute(
            " UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in tables)
        )
        return dict(cursor.fetchall())
