"""Running a test of the admin with the queue in every database; users are in the default one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from steady_queue_core.models import BlockedExecution, ReadyExecution, WaitingExecution

from ..models.everywhere import Jobs
from ..servers.kinds import KINDS

BACKEND = "steady_queue_core.backend.SteadyQueueBackend"
HOUR = timedelta(hours=1)


def _on(alias: str) -> Any:
    databases = ["default"] if alias == "default" else ["default", alias]
    mark = pytest.mark.django_db(databases=databases, transaction=True)
    return pytest.param(alias, marks=mark, id=alias)


#: Gives ``using``; the fixture ``queue_in`` has the queue be there.
on_every_database = pytest.mark.parametrize("using", [_on("default"), *map(_on, KINDS)])


def tasks_in(*aliases: str) -> dict[str, Any]:
    """Return ``TASKS`` with a backend for each database, the first one the default."""
    names = ["default", *aliases[1:]]
    return {
        name: {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": {"database": alias}}
        for name, alias in zip(names, aliases, strict=True)
    }


class Scene(Jobs):
    """Jobs in every state."""

    def blocked(self, count: int = 1, key: str = "account:7", **fields: Any) -> list[int]:
        ids = self.ready(count, **fields)
        rows = ReadyExecution.objects.using(self.using).filter(pk__in=ids)
        blocked = [
            BlockedExecution(
                job_id=row.pk, queue_name=row.queue_name, rank=row.rank, token=row.token,
                created_at=row.created_at, concurrency_key=key,
            )
            for row in rows
        ]  # fmt: skip
        rows._raw_delete(self.using)
        BlockedExecution.objects.using(self.using).bulk_create(blocked)
        return ids

    def waiting(self, count: int = 1, **fields: Any) -> list[int]:
        ids = self.ready(count, **fields)
        rows = ReadyExecution.objects.using(self.using).filter(pk__in=ids)
        waiting = [
            WaitingExecution(
                job_id=row.pk, queue_name=row.queue_name, rank=row.rank, token=row.token,
                created_at=row.created_at, width=3,
            )
            for row in rows
        ]  # fmt: skip
        rows._raw_delete(self.using)
        WaitingExecution.objects.using(self.using).bulk_create(waiting)
        return ids
