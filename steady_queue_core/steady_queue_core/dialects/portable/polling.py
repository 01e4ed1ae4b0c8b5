"""Claiming, settling and dispatching, in plain ORM."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.transaction import atomic

from ..records import ClaimedJob, Dispatched, Ending, Outcome, ProcessIdentity, QueueSelector
from .clock import aware, current_time, now, storable
from .listing import list_queues, paused_queues
from .locking import lock_rows
from .models import model
from .permits import admit, discard_refused, end_permits, lock_semaphores
from .tokens import next_token


def claim(
    connection: BaseDatabaseWrapper, process: ProcessIdentity, selector: QueueSelector, limit: int
) -> list[ClaimedJob]:
    """Lock ready rows in order, move them to claimed, and load their jobs."""
    using = connection.alias
    ready = model("ReadyExecution").objects.using(using)
    if limit <= 0 or not ready.exists():
        return []
    with atomic(using=using, savepoint=False):
        registered = model("Process").objects.using(using)
        if not registered.filter(pk=process.id, name=process.name).exists():
            return []
        picked: list[Any] = []
        for scope in _scopes(connection, selector):
            rows = scope.order_by("rank", "job_id")[: limit - len(picked)]
            picked += lock_rows(connection, rows, wait=False)
            if len(picked) >= limit:
                break
        if not picked:
            return []
        ready.filter(pk__in=[row.pk for row in picked]).delete()
        wanted = model("Job").objects.using(using).filter(pk__in=[row.pk for row in picked])
        # Locked, so that a job is seen even if it is newer than this transaction's snapshot.
        jobs = {job.pk: job for job in lock_rows(connection, wanted, wait=True)}
        claims = model("ClaimedExecution").objects.using(using)
        running = set(claims.filter(pk__in=jobs).values_list("pk", flat=True))
        # A stray ready row, whose job is gone, has ended or is running, ends here.
        taken = [
            (row, next_token(row.token))
            for row in picked
            if row.pk in jobs and jobs[row.pk].finished_at is None and row.pk not in running
        ]
        present = current_time(connection, now(connection))
        claims.bulk_create(
            [
                _moved("ClaimedExecution", row, token, present, process_id=process.id)
                for row, token in taken
            ]
        )
    return [_claimed_job(jobs[row.pk], token, present) for row, token in taken]


def _scopes(connection: BaseDatabaseWrapper, selector: QueueSelector) -> list[QuerySet[Any]]:
    """Return the ready rows to take, in parts that come one after the other."""
    ready = model("ReadyExecution").objects.using(connection.alias)
    if selector.takes_all:
        pauses = model("Pause").objects.using(connection.alias)
        return [ready.exclude(queue_name__in=pauses.values("queue_name"))]
    names = selector.matching(
        lambda prefix: list_queues(connection, prefix), paused_queues(connection)
    )
    return [ready.filter(queue_name=name) for name in names]


def settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
    """Lock the claims that are still held, and end each of them."""
    using = connection.alias
    keys = {outcome.concurrency_key for outcome in outcomes if outcome.concurrency_key}
    with atomic(using=using, savepoint=False):
        lock_semaphores(connection, keys)
        claims = model("ClaimedExecution").objects.using(using)
        rows = claims.filter(pk__in=[outcome.job_id for outcome in outcomes]).order_by("pk")
        tokens = {row.pk: row.token for row in lock_rows(connection, rows, wait=True)}
        # One job may appear twice only with different tokens, of which one can match.
        held = [o for o in outcomes if tokens.get(o.job_id) == o.token]
        claims.filter(pk__in=[outcome.job_id for outcome in held]).delete()
        present = current_time(connection, now(connection))
        for outcome in held:
            _end(connection, outcome, present)
        admit(connection, sorted(keys))
    return {outcome.job_id for outcome in held}


def dispatch(connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
    """Lock due rows in order and move them to ready."""
    using = connection.alias
    scheduled = model("ScheduledExecution").objects.using(using)
    with atomic(using=using, savepoint=False):
        present = current_time(connection, now(connection))
        due = scheduled.filter(due_at__lte=storable(present)).order_by("due_at", "rank", "job_id")
        rows = list(lock_rows(connection, due[:limit], wait=False))
        scheduled.filter(pk__in=[row.pk for row in rows])._raw_delete(using)
        limited = [row for row in rows if row.concurrency_key]
        model("ReadyExecution").objects.using(using).bulk_create(
            [
                _moved("ReadyExecution", row, row.token, present)
                for row in rows
                if not row.concurrency_key
            ]
        )
        _admit_due(connection, limited, present)
        following = scheduled.order_by("due_at").values_list("due_at", flat=True).first()
    if following is None:
        return Dispatched(len(rows), None)
    return Dispatched(len(rows), max(0.0, (aware(following) - present).total_seconds()))


def _admit_due(connection: BaseDatabaseWrapper, rows: Sequence[Any], present: datetime) -> None:
    """Block the rows of jobs with a limit, and let in whom there are permits for."""
    using = connection.alias
    model("BlockedExecution").objects.using(using).bulk_create(
        [
            _moved("BlockedExecution", row, row.token, present, concurrency_key=row.concurrency_key)
            for row in rows
        ]
    )
    admit(connection, sorted({row.concurrency_key for row in rows}))
    jobs = model("Job").objects.using(using).filter(pk__in=[row.pk for row in rows])
    discarding = jobs.filter(concurrency_discards=True).values_list("pk", flat=True)
    discard_refused(connection, list(discarding))


def _moved(name: str, row: Any, token: int, present: datetime, **extra: Any) -> Any:
    return model(name)(
        job_id=row.job_id,
        queue_name=row.queue_name,
        rank=row.rank,
        token=token,
        created_at=storable(present),
        **extra,
    )


def _claimed_job(job: Any, token: int, present: datetime) -> ClaimedJob:
    return ClaimedJob(
        job_id=job.pk,
        token=token,
        queue_name=job.queue_name,
        rank=job.rank,
        task_path=job.task_path,
        backend_name=job.backend_name,
        arguments=job.arguments,
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        worker_ids=job.worker_ids,
        errors=job.errors,
        enqueued_at=aware(job.enqueued_at),
        started_at=aware(job.started_at) if job.started_at else None,
        claimed_at=present,
        concurrency_key=job.concurrency_key,
    )


def _end(connection: BaseDatabaseWrapper, outcome: Outcome, present: datetime) -> None:
    using = connection.alias
    job = model("Job").objects.using(using).filter(pk=outcome.job_id)
    if outcome.concurrency_key and outcome.ending is not Ending.RELEASED:
        end_permits(connection, [outcome.job_id])
    if outcome.ending is Ending.FINISHED and not outcome.preserve:
        job._raw_delete(using)
        return
    if outcome.ending is not Ending.RELEASED:
        ended = outcome.ending is not Ending.RETRIED
        job.update(
            attempts=outcome.attempts,
            token=outcome.token,
            worker_ids=outcome.worker_ids,
            errors=outcome.errors,
            return_value=outcome.return_value,
            started_at=storable(outcome.started_at) if outcome.started_at else None,
            last_attempted_at=(
                storable(outcome.last_attempted_at) if outcome.last_attempted_at else None
            ),
            finished_at=storable(present) if ended else None,
        )
    _place(using, outcome, present)


def _place(using: str, outcome: Outcome, present: datetime) -> None:
    if outcome.ending is Ending.FINISHED:
        return
    if outcome.ending is Ending.FAILED:
        row = model("FailedExecution")(
            job_id=outcome.job_id,
            created_at=storable(present),
            exception_class=outcome.exception_class,
            message=outcome.message,
        )
    elif outcome.ending is Ending.RETRIED and outcome.delay > 0:
        due = storable(present + timedelta(seconds=outcome.delay))
        limited = {"concurrency_key": outcome.concurrency_key}
        row = _moved("ScheduledExecution", outcome, outcome.token, present, due_at=due, **limited)
    elif outcome.concurrency_key and not _holds_permit(using, outcome):
        limited = {"concurrency_key": outcome.concurrency_key}
        row = _moved("BlockedExecution", outcome, outcome.token, present, **limited)
    else:
        row = _moved("ReadyExecution", outcome, outcome.token, present)
    # A failed row may be there already, which only a stranger can bring about.
    row.save(using=using, force_insert=outcome.ending is not Ending.FAILED)


def _holds_permit(using: str, outcome: Outcome) -> bool:
    return bool(model("Permit").objects.using(using).filter(pk=outcome.job_id).exists())
