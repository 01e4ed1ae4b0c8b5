"""What can be learnt of a batch, and done with it, once it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from asgiref.sync import sync_to_async
from django.db.models import Count

from .. import arguments
from ..arguments import DeserializationError
from ..compat import AnyTaskResult
from ..dialects import MemberState, portable
from ..dialects.database import Database
from ..dialects.membership import FAILURES
from ..errors import BatchDoesNotExist
from ..models import BatchMember, JobBatch
from ..models.job import RESULT, Job
from ..progress import Progress
from ..tasks.results import task_result_of
from ..timezones import from_utc
from . import rows, waiting
from .mermaid import mermaid_of
from .picture import read_picture

#: Most members that are read at once.
MOST_READ = 1000


class BatchStatus(StrEnum):
    """How far a batch has come."""

    #: Its first members are still added.
    OPEN = "open"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    #: It has ended, and some of its jobs have failed or were cancelled.
    FAILED = "failed"
    CANCELLED = "cancelled"


def status_of(row: Any) -> BatchStatus:
    """Return how far the batch of a row has come."""
    if row.finished_at is None:
        return BatchStatus.RUNNING if row.started_at is not None else BatchStatus.OPEN
    if row.cancelled_at is not None:
        return BatchStatus.CANCELLED
    return BatchStatus.FAILED if row.failed else BatchStatus.SUCCEEDED


class BatchHandle:
    """A stored batch as it was when it was read last; ``refresh()`` reads it again."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        #: The alias of its database.
        self.using: str = backend.database
        self._id: int | None = None
        self._row: Any = None
        self._counts: Mapping[int, int] = {}

    @classmethod
    def of(cls, batch_id: int, backend: Any) -> Self:
        """Return a batch in the database of ``backend``. Raises ``BatchDoesNotExist``."""
        batch = cls.__new__(cls)
        BatchHandle.__init__(batch, backend)
        batch._set_id(batch_id)
        batch.refresh()
        return batch

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._id if self._id is not None else 'not stored'}>"

    def _set_id(self, batch_id: int) -> None:
        self._id = batch_id
        self._row = None

    @property
    def id(self) -> int:
        """The id of the batch. Raises ``ValueError`` before it is stored."""
        if self._id is None:
            raise ValueError("The batch is not stored yet: it is when its block is entered.")
        return self._id

    def refresh(self) -> None:
        """Read the batch again, and count its members. Raises ``BatchDoesNotExist``."""
        self._row = JobBatch.objects.using(self.using).filter(pk=self.id).first()
        if self._row is None:
            raise BatchDoesNotExist(f"There is no batch {self.id} in {self.using!r}.")
        self._counts = self._count()

    async def arefresh(self) -> None:
        """Async version of :meth:`refresh`."""
        await sync_to_async(self.refresh, thread_sensitive=True)()

    def _count(self) -> Mapping[int, int]:
        members = BatchMember.objects.using(self.using).filter(batch_id=self.id).order_by()
        return dict(members.values_list("state").annotate(Count("pk")))

    @property
    def _stored(self) -> Any:
        if self._row is None:
            self.refresh()
        return self._row

    @property
    def description(self) -> str:
        """What the batch is called."""
        return str(self._stored.description)

    @property
    def metadata(self) -> dict[str, Any]:
        """What was passed as ``metadata=``; empty if that is damaged."""
        text = self._stored.metadata
        try:
            found = {} if text is None else arguments.decode(text, resolve_models=False)
        except DeserializationError:
            found = {}
        return found if isinstance(found, dict) else {}

    @property
    def status(self) -> BatchStatus:
        """How far the batch has come."""
        return status_of(self._stored)

    @property
    def is_finished(self) -> bool:
        """Whether the batch has ended."""
        return self._stored.finished_at is not None

    @property
    def created_at(self) -> datetime:
        """When the batch was made."""
        return from_utc(portable.aware(self._stored.created_at))

    @property
    def finished_at(self) -> datetime | None:
        """When the batch ended."""
        ended = self._stored.finished_at
        return None if ended is None else from_utc(portable.aware(ended))

    @property
    def total(self) -> int:
        """The number of members; a batch within this one is one of them."""
        return sum(self._counted.values())

    @property
    def pending(self) -> int:
        """The number of members that have not ended."""
        return self._counted.get(MemberState.PENDING, 0)

    @property
    def failed(self) -> int:
        """The number of members that have failed or were cancelled."""
        return sum(self._counted.get(state, 0) for state in FAILURES)

    @property
    def completed(self) -> int:
        """The number of members that have ended otherwise."""
        return self.total - self.pending - self.failed

    @property
    def progress(self) -> Progress:
        """How many members have ended, of how many."""
        return Progress(self.total - self.pending, self.total or None)

    @property
    def _counted(self) -> Mapping[int, int]:
        _ = self._stored
        return self._counts

    def results(self) -> list[AnyTaskResult | Any]:
        """Return the results of the members in their order: of jobs that still exist their
        results, of batches these."""
        found: list[Any] = []
        members = BatchMember.objects.using(self.using).filter(batch_id=self.id).order_by("pk")
        last = 0
        while some := list(members.filter(pk__gt=last)[:MOST_READ]):
            last = some[-1].pk
            jobs = self._jobs([row.job_id for row in some if row.job_id is not None])
            nested = self._nested([row.pk for row in some if row.job_id is None])
            for row in some:
                if row.job_id in jobs:
                    found.append(task_result_of(jobs[row.job_id]))
                elif row.pk in nested:
                    found.append(BatchHandle.of(nested[row.pk], self.backend))
        return found

    async def aresults(self) -> list[AnyTaskResult | Any]:
        """Async version of :meth:`results`."""
        found: list[Any] = await sync_to_async(self.results, thread_sensitive=True)()
        return found

    def mermaid(self) -> str:
        """Return the members, and what waits for what, as the text of a `Mermaid
        <https://mermaid.js.org>`_ flowchart: the first 200 of them, also of batches in it, with
        their states as classes."""
        return mermaid_of(read_picture(self.using, self.id), self.total)

    async def amermaid(self) -> str:
        """Async version of :meth:`mermaid`."""
        text: str = await sync_to_async(self.mermaid, thread_sensitive=True)()
        return text

    def _jobs(self, job_ids: list[int]) -> dict[int, Any]:
        jobs = Job.objects.using(self.using).filter(pk__in=job_ids)
        return {job.pk: job for job in jobs.select_related(*RESULT).defer("checkpoint__data")}

    def _nested(self, member_ids: list[int]) -> dict[int, int]:
        batches = JobBatch.objects.using(self.using).filter(member_id__in=member_ids)
        return dict(batches.values_list("member_id", "pk"))

    def wait(self, timeout: float | timedelta | None = None) -> Self:
        """Wait until the batch has ended, at most ``timeout`` seconds; return it, refreshed.

        Raises ``TimeoutError``; ``BatchDoesNotExist`` if it is deleted; and
        ``TransactionManagementError`` in a transaction that would never see the end.
        """
        waiting.wait(self, timeout)
        return self

    async def await_result(self, timeout: float | timedelta | None = None) -> Self:
        """Async version of :meth:`wait`."""
        await waiting.await_result(self, timeout)
        return self

    def cancel(self) -> bool:
        """Cancel the batch: its waiting jobs fail with ``TaskCancelled`` at once, running ones are
        interrupted, batches in it are cancelled, and it takes no more jobs. Return whether it had
        not ended."""
        was_going_on = rows.cancel(Database.of(self.using), self.id)
        self.refresh()
        return was_going_on

    async def acancel(self) -> bool:
        """Async version of :meth:`cancel`."""
        cancelled: bool = await sync_to_async(self.cancel, thread_sensitive=True)()
        return cancelled

    def retry(self) -> int:
        """Run the jobs again that have failed or were cancelled, and after them those that had
        waited for them; return their number. Jobs that have succeeded stay as they are.

        If the batch had ended, it goes on, and enqueues its callbacks again at its end.
        """
        number = rows.retry(Database.of(self.using), self.id)
        self.refresh()
        return number

    async def aretry(self) -> int:
        """Async version of :meth:`retry`."""
        number: int = await sync_to_async(self.retry, thread_sensitive=True)()
        return number
