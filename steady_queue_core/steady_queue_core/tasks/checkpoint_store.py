"""The checkpoints and steps of jobs in a database, as the task that runs reads and writes them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from django.db import Error, connections

from ..dialects import CheckpointChange, StepRecord, dialect_for

T = TypeVar("T")

#: How often an operation is tried that meets contention, or a connection that is lost.
TRIES = 4
#: Seconds before it is tried again, doubled each time.
PAUSE = 0.05


class DatabaseStore:
    """Reads and writes on the connection of the calling thread: in the task's own transaction if it
    has begun one."""

    def __init__(self, using: str) -> None:
        self.using = using

    @property
    def is_in_transaction(self) -> bool:
        connection = connections[self.using]
        return connection.in_atomic_block or not connection.get_autocommit()

    def save(self, change: CheckpointChange) -> bool:
        dialect = dialect_for(self.using)
        return self._persistently(lambda: dialect.save_checkpoint(connections[self.using], change))

    def load(self, job_id: int) -> tuple[int, Any] | None:
        from ..models import Checkpoint

        rows = Checkpoint.objects.using(self.using).filter(pk=job_id)
        return self._persistently(lambda: rows.all().values_list("token", "data").first())

    def save_step(self, step: StepRecord) -> bool:
        dialect = dialect_for(self.using)
        return self._persistently(lambda: dialect.save_step(connections[self.using], step))

    def load_steps(self, job_id: int) -> list[StepRecord]:
        from ..models import Step

        rows = Step.objects.using(self.using).filter(job_id=job_id)
        found = self._persistently(lambda: list(rows.all().values_list(*StepRecord._fields)))
        return [StepRecord(*row) for row in found]

    def is_held(self, job_id: int, token: int) -> bool:
        dialect = dialect_for(self.using)
        return self._persistently(lambda: dialect.is_held(connections[self.using], job_id, token))

    def _persistently(self, operation: Callable[[], T]) -> T:
        """Return what ``operation`` returns, which may be done twice.

        A task may compute for so long that its connection is closed by the server meanwhile.
        """
        if self.is_in_transaction:
            return operation()
        for tried in range(1, TRIES):
            try:
                return operation()
            except Error as error:
                if not self._may_pass(error):
                    raise
            time.sleep(PAUSE * 2**tried * random.random())
        return operation()

    def _may_pass(self, error: Error) -> bool:
        connection, dialect = connections[self.using], dialect_for(self.using)
        if dialect.is_contention(connection, error):
            return True
        if not dialect.is_lost_connection(connection, error):
            return False
        with suppress(Exception):
            connection.close()
        return True
