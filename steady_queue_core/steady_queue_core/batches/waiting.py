"""Waiting for the end of a batch."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections
from django.db.transaction import TransactionManagementError

from ..models import JobBatch
from ..tasks.waiting import BACK_OFF, FIRST_PAUSE, LONGEST_PAUSE, seconds


def wait(batch: Any, timeout: float | timedelta | None) -> None:
    """Return when the batch has ended, with ``batch`` refreshed."""
    waiting = _Wait(batch, timeout)
    while not waiting.has_ended():
        time.sleep(waiting.next_pause())


async def await_result(batch: Any, timeout: float | timedelta | None) -> None:
    """Async version of :func:`wait`."""
    waiting = _Wait(batch, timeout)
    has_ended = sync_to_async(waiting.has_ended, thread_sensitive=True)
    while not await has_ended():
        await asyncio.sleep(waiting.next_pause())


class _Wait:
    def __init__(self, batch: Any, timeout: float | timedelta | None) -> None:
        self.batch, self.timeout = batch, seconds(timeout)
        self._began = time.monotonic()

    def has_ended(self) -> bool:
        """Look whether the batch has ended, and count its members only then."""
        rows = JobBatch.objects.using(self.batch.using).filter(pk=self.batch.id)
        is_over = self._elapsed >= self.timeout
        found = rows.values_list("finished_at").first()
        if is_over or found is None or found[0] is not None:
            self.batch.refresh()
            if self.batch.is_finished:
                return True
        self._require_visible_end()
        if is_over:
            raise TimeoutError(
                f"Batch {self.batch.id} has not ended within {self.timeout:g} s: "
                f"{self.batch.pending} of {self.batch.total} members are pending."
            )
        return False

    def next_pause(self) -> float:
        """Return the seconds until the next look."""
        pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, self._elapsed * BACK_OFF))
        return max(0.0, min(pause, self.timeout - self._elapsed))

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _require_visible_end(self) -> None:
        connection = connections[self.batch.using]
        if connection.in_atomic_block or (
            connection.connection is not None and not connection.get_autocommit()
        ):
            raise TransactionManagementError(
                f"Batch {self.batch.id} cannot be waited for inside a transaction on "
                f"{self.batch.using!r}, which may hold its jobs back until it commits, or never "
                "see its end. Wait after the commit."
            )
