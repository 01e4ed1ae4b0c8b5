"""Dispatching: the stages in which due jobs become ready, in the order of the locks that they take.

A job for which somebody has locked a row, or that the database refuses, holds up no other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from . import apart
from .operations import Operations
from .ready import Ready
from .records import Dispatched


@dataclass(slots=True)
class Dispatching:
    """Due jobs that one transaction moves."""

    connection: BaseDatabaseWrapper
    dialect: Operations
    ready: Ready
    #: How many jobs may be moved.
    limit: int
    #: The rows of those that are.
    due: list[Any] = field(default_factory=list)
    dispatched: Dispatched = field(init=False)


Stage = Callable[[Dispatching], None]


def lock_due(dispatching: Dispatching) -> None:
    """Lock the scheduled rows of the next jobs."""
    dispatching.due = dispatching.ready.lock_due(dispatching.limit)


def move_due(dispatching: Dispatching) -> None:
    """Move these to ready or blocked, and admit those that get permits."""
    # Due before all others, and locked by this transaction: exactly they are moved.
    dispatching.dispatched = dispatching.dialect.move_due(
        dispatching.connection, len(dispatching.due) or dispatching.limit
    )


def make_ready(dispatching: Dispatching) -> None:
    """Give turns to those of fair queues, and to the jobs that were admitted with them."""
    dispatching.ready.dispatched(dispatching.due)


DISPATCHING: tuple[Stage, ...] = (lock_due, move_due, make_ready)


def dispatch(connection: BaseDatabaseWrapper, dialect: Operations, limit: int) -> Dispatched:
    """Move due jobs to ready, apart from each other where something holds them up."""
    joins = connection.in_atomic_block or not connection.get_autocommit()
    if limit <= 0 or joins:
        return dispatch_together(connection, dialect, limit)
    return apart.dispatch(connection, dialect, limit, dispatch_together)


def dispatch_together(
    connection: BaseDatabaseWrapper, dialect: Operations, limit: int
) -> Dispatched:
    """Move due jobs to ready, in one operation of the dialect if none is for a fair queue."""
    ready = Ready(connection, dialect)
    if limit <= 0 or not ready.any_is_due(limit):
        return dialect.move_due(connection, limit)
    dispatching = Dispatching(connection, dialect, ready, limit)
    with dialect.transaction(connection):
        for stage in DISPATCHING:
            stage(dispatching)
    return dispatching.dispatched
