"""Repeating what has deadlocked with somebody else."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

T = TypeVar("T")

#: Seconds after which no other try begins: whoever has waited for a lock for so long will not get
#: it soon.
PATIENCE = 5.0
#: The longest pause before the first repetition, in seconds; it doubles with each.
FIRST_PAUSE = 0.005


def until_free(
    connection: BaseDatabaseWrapper,
    operation: Callable[[], T],
    is_contention: Callable[[BaseDatabaseWrapper, BaseException], bool],
) -> T:
    """Return the result of ``operation``, a transaction. It is repeated after a deadlock, unless it
    is part of the caller's transaction, which only the caller can repeat."""
    joins = connection.in_atomic_block or not connection.get_autocommit()
    began, pause = time.monotonic(), FIRST_PAUSE
    while True:
        try:
            return operation()
        except DatabaseError as error:
            is_late = time.monotonic() - began > PATIENCE
            if joins or is_late or not is_contention(connection, error):
                raise
        # Random, or the same two transactions would meet again.
        time.sleep(random.uniform(0, pause))
        pause *= 2
