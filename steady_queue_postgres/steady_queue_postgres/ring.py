"""Ringing the bell: a notification apart from the enqueue, and not for every one.

Inside the transaction it would make all commits of the server wait for each other. Workers that
were rung look again after a few milliseconds by themselves, so that a process rings no more often
than they do.
"""

from __future__ import annotations

import time

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import get_logger

from .channel import RING

logger = get_logger("steady_queue.postgres")

#: Seconds between two rings of a process.
INTERVAL = 0.005

# It is worth nothing after a crash: its commit need not wait for the disk.
RING_LIGHTLY = f"SELECT set_config('synchronous_commit', 'off', true), {RING}"
RING_WITHIN = f"SELECT {RING}"

_rung_at: dict[str, float] = {}


def ring(connection: BaseDatabaseWrapper) -> None:
    """Notify, unless this process has just done so. Never raises."""
    now = time.monotonic()
    if now - _rung_at.get(connection.alias, -INTERVAL) < INTERVAL:
        return
    _rung_at[connection.alias] = now
    try:
        with connection.cursor() as cursor:
            cursor.execute(RING_WITHIN if connection.in_atomic_block else RING_LIGHTLY)
    except (DatabaseError, InterfaceError) as error:
        # The jobs are stored: workers find them by polling.
        logger.warning(
            "Workers could not be notified of new jobs: %s", error, extra={"event": "wakeup.failed"}
        )
