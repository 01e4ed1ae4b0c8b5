"""Running a test on every database, and jobs for it in every state."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.db import connections

from steady_queue_core.conformance.base import new_job, stored_id
from steady_queue_core.dialects import ClaimedJob, Ending, NewJob, Outcome, QueueSelector
from steady_queue_core.dialects.registry import dialect_for
from steady_queue_core.models import Job
from steady_queue_core.models.process import register

from ..positions import forget_positions
from ..servers.kinds import KINDS


def _on(*aliases: str) -> Any:
    return pytest.mark.parametrize(
        "using",
        [
            pytest.param(
                alias, marks=pytest.mark.django_db(databases=[alias], transaction=True), id=alias
            )
            for alias in aliases
        ],
    )


on_every_database = _on("default", *KINDS)
#: Where transactions lock rows, not the whole database.
on_every_server = _on(*KINDS)
#: Where a transaction that has an old snapshot may write what others have changed since.
where_snapshots_are_old = _on("mysql", "mariadb")
#: Where it may be refused that, by a setting.
where_snapshots_may_be_kept = _on("mariadb")


class Jobs:
    """The jobs of a database, moved by its dialect as the processes would."""

    def __init__(self, using: str) -> None:
        self.using = using
        self.connection, self.dialect = connections[using], dialect_for(using)
        self.worker = register(
            using, kind="worker", name="worker-1", pid=1, hostname="here", supervisor_id=None,
            metadata="{}",
        )  # fmt: skip

    @staticmethod
    def present(using: str) -> datetime:
        return dialect_for(using).current_time(connections[using])

    def forget_positions(self) -> None:
        """Forget how far claims on this connection, those of other tests too, have read."""
        forget_positions(self.connection)

    @property
    def all(self) -> Any:
        return Job.objects.using(self.using)

    def ready(self, count: int = 1, queue_name: str = "default", **fields: Any) -> list[int]:
        jobs: list[NewJob] = [new_job(queue_name, **fields) for _ in range(count)]
        return [stored_id(new) for new in self.dialect.enqueue(self.connection, jobs)]

    def claimed(self, count: int = 1, **fields: Any) -> list[ClaimedJob]:
        self.ready(count, **fields)
        return self.claim(count)

    def claim(self, limit: int = 100, *patterns: str) -> list[ClaimedJob]:
        selector = QueueSelector.of(patterns)
        return self.dialect.claim(self.connection, self.worker, selector, limit)

    def finished(self, count: int = 1, **fields: Any) -> list[int]:
        return self._ended(Ending.FINISHED, count, **fields)

    def failed(self, count: int = 1, **fields: Any) -> list[int]:
        return self._ended(Ending.FAILED, count, **fields)

    def _ended(self, ending: Ending, count: int, **fields: Any) -> list[int]:
        claims = self.claimed(count, **fields)
        outcomes = [
            Outcome(
                ending, claim.job_id, claim.token, claim.queue_name, claim.rank, attempts=1,
                worker_ids='["worker-1"]', errors='[["builtins.ValueError", "told"]]',
                started_at=claim.claimed_at, last_attempted_at=claim.claimed_at,
                exception_class="builtins.ValueError", message="told",
                concurrency_key=claim.concurrency_key,
            )
            for claim in claims
        ]  # fmt: skip
        return sorted(self.dialect.settle(self.connection, outcomes))

    def ids(self, model: Any) -> list[int]:
        return sorted(model.objects.using(self.using).values_list("pk", flat=True))
