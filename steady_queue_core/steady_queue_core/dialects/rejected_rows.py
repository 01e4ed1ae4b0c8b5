"""What a database rejects: one row among many, or everything that is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from django.db import Error
from django.db.backends.base.base import BaseDatabaseWrapper

from .operations import Operations
from .portable.models import rows_of

T = TypeVar("T")

#: Refusals of single rows after which a database seems to refuse all, if it has taken none.
MOST = 20


def require_writes(connection: BaseDatabaseWrapper) -> None:
    """Raise the error of a database that takes nothing, such as a read-only one. Changes no row."""
    rows_of(connection, "Process").filter(pk=0).update(pid=0)


def rejects_rows(
    connection: BaseDatabaseWrapper, dialect: Operations, error: BaseException
) -> bool:
    """Whether the database takes what is written, but for rows that led to this ``error``."""
    if dialect.is_contention(connection, error) or dialect.is_lost_connection(connection, error):
        return False
    try:
        require_writes(connection)
    except Error:
        return False
    return True


def in_halves(
    connection: BaseDatabaseWrapper,
    dialect: Operations,
    items: Sequence[T],
    do: Callable[[Sequence[T]], int],
) -> tuple[int, dict[T, Exception]]:
    """Do something with ``items``, in a transaction; by halves where the database refuses it for
    one of them. Return the sum of the results, and the errors of those that were refused."""
    done, taken, refused = 0, False, dict[T, Exception]()
    left = [items]
    while left:
        some = left.pop()
        try:
            done += do(some)
            taken = True
        except Exception as error:
            if not rejects_rows(connection, dialect, error):
                raise
            if len(some) > 1:
                half = len(some) // 2
                left += [some[half:], some[:half]]
                continue
            refused[some[0]] = error
            if not taken and len(refused) == MOST:
                raise
    return done, refused
