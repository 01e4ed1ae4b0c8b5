"""Creating, starting, cancelling and reading the rows of batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from django.db import DatabaseError, OperationalError, ProgrammingError

from ..dialects import MemberState
from ..dialects.database import Database
from ..errors import AlreadyFinished
from ..models import BatchMember, Job, JobBatch
from ..models.operations.batch_maintenance import BatchMaintenance
from ..models.operations.batches import retry_batch
from ..models.readiness import require_tables
from ..tasks.current_batch import OpenBatch


@contextmanager
def missing_tables_named(database: Database) -> Iterator[None]:
    """Raise ``MigrationsMissing`` where statements fail for the lack of tables. To be entered
    outside of the transaction: nothing can be asked in one that has failed."""
    try:
        yield
    except (OperationalError, ProgrammingError):
        with suppress(DatabaseError):
            require_tables(database.connection)
        raise


def create(database: Database, values: Mapping[str, Any], parent: OpenBatch | None) -> int:
    """Insert a batch that is not started; return its id. ``parent`` is the batch that is open, of
    which it becomes a member unless that is in another database.

    Raises ``AlreadyFinished`` if that takes no more, and ``MigrationsMissing`` if there are no
    tables for it.
    """
    using = database.alias

    def insert() -> int:
        row = JobBatch(**values, created_at=database.storable_time())
        if parent is not None and parent.using == using:
            # A block without a transaction does not keep its batch from being cancelled.
            if database.joins.lock_open({parent.batch_id}):
                raise AlreadyFinished(
                    f"Nothing was stored: batch {parent.batch_id}, in whose block it is made, "
                    "has ended, was cancelled, or is gone. Make it outside, or in another batch."
                )
            member = BatchMember(batch_id=parent.batch_id)
            member.save(using=using, force_insert=True)
            row.member_id = member.pk
        row.save(using=using, force_insert=True)
        return int(row.pk)

    with missing_tables_named(database):
        return database.in_transaction(insert)


def start(database: Database, batch_id: int) -> None:
    """Let a batch end as soon as none of its members is pending, which may be now."""
    rows = JobBatch.objects.using(database.alias).filter(pk=batch_id, started_at=None)

    def update() -> None:
        if rows.update(started_at=database.storable_time()):
            database.end_if_done(batch_id)

    database.in_transaction(update)


def cancel(database: Database, batch_id: int) -> bool:
    """Cancel a batch and its pending members; return whether it had not ended. No more members are
    added."""
    batches = JobBatch.objects.using(database.alias)
    known, seen, cancelled = [batch_id], {batch_id}, list[int]()
    for pk in known:  # Which grows meanwhile.
        if not _cancel_members(database, pk):
            continue
        cancelled.append(pk)
        nested = batches.filter(member__batch_id=pk, finished_at=None).order_by("pk")
        # A damaged row may say that a batch is in itself.
        found = [each for each in nested.values_list("pk", flat=True) if each not in seen]
        known += found
        seen |= {*found}
    maintenance = BatchMaintenance(database.alias, Job.objects.using(database.alias))
    for pk in reversed(cancelled):
        maintenance.end_lost_members(pk)
        database.in_transaction(partial(database.end_if_done, pk))
    return batch_id in cancelled


def _cancel_members(database: Database, batch_id: int) -> bool:
    """Let a batch take no more members, and cancel the jobs in it; return whether it had not
    ended."""
    using = database.alias
    unfinished = JobBatch.objects.using(using).filter(pk=batch_id, finished_at=None)

    def close() -> bool:
        if not list(database.lock_rows(unfinished, wait=True)):
            return False
        unfinished.filter(cancelled_at=None).update(cancelled_at=database.storable_time())
        return True

    if not database.in_transaction(close):
        return False
    pending = {"membership__batch_id": batch_id, "membership__state": MemberState.PENDING}
    Job.objects.using(using).filter(**pending).cancel()
    return True


def retry(database: Database, batch_id: int) -> int:
    """Run the jobs of a batch again that have failed or were cancelled; return their number."""
    return retry_batch(database, Job.objects.using(database.alias), batch_id)
