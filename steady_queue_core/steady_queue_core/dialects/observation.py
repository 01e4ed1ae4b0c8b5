"""Observation: what a dialect has seen that is wrong with its server, at this moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from django.db import DatabaseError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

#: Jobs do not run, or will not; they may not, or may be late; worth knowing.
PROBLEM, WARNING, INFO = "problem", "warning", "info"


class Observation(NamedTuple):
    """Something that is wrong with a server, or with the tables of the queue there."""

    #: Lower case and hyphens. Those of ``docs/doctor.md`` come in the order of that page, and
    #: others after them.
    code: str
    #: One or two sentences for people.
    text: str
    #: What to do about it.
    remedy: str
    #: ``PROBLEM``, ``WARNING`` or ``INFO``.
    severity: str = WARNING


Look = Callable[[BaseDatabaseWrapper], Iterable[Observation]]


def observed(connection: BaseDatabaseWrapper, looks: Iterable[Look]) -> Iterator[Observation]:
    """Yield what these ``looks`` find. One that the server refuses is an observation, too."""
    for look in looks:
        try:
            with kept_apart(connection):
                found = list(look(connection))
        except DatabaseError as error:
            if not connection.in_atomic_block and not connection.is_usable():
                raise
            what = getattr(look, "__name__", "").strip("_").replace("_", " ")
            yield Observation(
                "not-examined",
                f"Could not be examined ({what}): {str(error).strip()}",
                "Grant the privilege, or have a user who has it run the doctor.",
                INFO,
            )
        else:
            yield from found


def kept_apart(connection: BaseDatabaseWrapper) -> AbstractContextManager[object]:
    """Return a block whose statements may fail: within a transaction, others would fail then."""
    inside = connection.in_atomic_block
    return transaction.atomic(using=connection.alias) if inside else nullcontext()


def rows_of(connection: BaseDatabaseWrapper, sql: str, *values: Any) -> list[Any]:
    """Return all rows that a query finds."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values or None)
        return list(cursor.fetchall())
