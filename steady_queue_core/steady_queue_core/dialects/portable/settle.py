"""Ending claims, in plain ORM."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from ..outcome import Destination, Outcome, limited_keys
from .clock import storable
from .models import model, moved
from .own import lock_rows, present_time, transaction
from .permits import admit, end_permits, lock_semaphores, pass_permit


def settle(connection: BaseDatabaseWrapper, outcomes: Sequence[Outcome]) -> set[int]:
    """Lock the claims that are still held, and end each of them."""
    using = connection.alias
    keys = limited_keys(outcomes)
    with transaction(connection):
        lock_semaphores(connection, keys)
        claims = model("ClaimedExecution").objects.using(using)
        rows = claims.filter(pk__in=[outcome.job_id for outcome in outcomes]).order_by("pk")
        tokens = {row.pk: row.token for row in lock_rows(connection, rows, wait=True)}
        # One job may appear twice only with different tokens, of which one can match.
        held = [o for o in outcomes if tokens.get(o.job_id) == o.token]
        claims.filter(pk__in=[outcome.job_id for outcome in held]).delete()
        present = present_time(connection)
        for outcome in held:
            end_claim(connection, outcome, present)
        admit(connection, sorted(keys))
    return {outcome.job_id for outcome in held}


def end_claim(connection: BaseDatabaseWrapper, outcome: Outcome, present: datetime) -> None:
    """Write the end of a claim, whose row is gone, to the row of its job, and move the job."""
    using = connection.alias
    job = model("Job").objects.using(using).filter(pk=outcome.job_id)
    if outcome.heir is not None and outcome.ends_permit:
        pass_permit(connection, outcome.job_id, *outcome.heir)
    if outcome.ends_permit:
        end_permits(connection, [outcome.job_id])
    if outcome.deletes_job:
        job._raw_delete(using)
    elif outcome.updates_job:
        job.update(**job_changes(outcome, present))
    row = _destination_row(using, outcome, present)
    if row is not None:
        # A failed row may exist already, but only after manual edits.
        row.save(using=using, force_insert=outcome.destination is not Destination.FAILED)


def job_changes(outcome: Outcome, present: datetime) -> dict[str, Any]:
    """Return what an attempt that has ended changes in the row of its job, by columns."""
    return {
        "attempts": outcome.attempts,
        "token": outcome.token,
        "worker_ids": outcome.worker_ids,
        "errors": outcome.errors,
        "return_value": outcome.return_value,
        "started_at": _stored(outcome.started_at),
        "last_attempted_at": _stored(outcome.last_attempted_at),
        "finished_at": storable(present) if outcome.completes_job else None,
    }


def _destination_row(using: str, outcome: Outcome, present: datetime) -> Any | None:
    destination = outcome.destination
    if destination is Destination.NONE:
        return None
    if destination is Destination.FAILED:
        return model("FailedExecution")(
            job_id=outcome.job_id,
            created_at=storable(present),
            exception_class=outcome.exception_class,
            message=outcome.message,
            fingerprint=outcome.fingerprint,
        )
    limited = {"concurrency_key": outcome.concurrency_key}
    if destination is Destination.SCHEDULED:
        due = storable(present + timedelta(seconds=outcome.delay))
        return moved("ScheduledExecution", outcome, outcome.token, present, due_at=due, **limited)
    if destination is Destination.READY_OR_BLOCKED and not _holds_permit(using, outcome):
        return moved("BlockedExecution", outcome, outcome.token, present, **limited)
    return moved("ReadyExecution", outcome, outcome.token, present)


def _holds_permit(using: str, outcome: Outcome) -> bool:
    return bool(model("Permit").objects.using(using).filter(pk=outcome.job_id).exists())


def _stored(value: datetime | None) -> datetime | None:
    return None if value is None else storable(value)
