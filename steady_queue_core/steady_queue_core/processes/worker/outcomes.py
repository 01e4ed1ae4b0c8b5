"""Outcomes of claims: what is stored when a job finished, failed, is tried again or given back."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime

from ...dialects import ClaimedJob, Ending, Outcome
from ...tasks.results import workers_of
from .error_text import Failure, appended, describe


def finished(
    claim: ClaimedJob, worker: str, started_at: datetime, return_value: str, preserve: bool
) -> Outcome:
    """The task returned."""
    return Outcome(
        ending=Ending.FINISHED,
        job_id=claim.job_id,
        token=claim.token,
        queue_name=claim.queue_name,
        rank=claim.rank,
        concurrency_key=claim.concurrency_key,
        attempts=claim.attempts + 1,
        worker_ids=with_worker(claim.worker_ids, worker),
        errors=claim.errors,
        started_at=claim.started_at or started_at,
        last_attempted_at=started_at,
        return_value=return_value,
        preserve=preserve,
    )


def unsuccessful(
    claim: ClaimedJob,
    worker: str,
    started_at: datetime,
    failure: Failure,
    delay: Callable[[], float | None],
) -> Outcome:
    """The attempt failed: another one follows if there is one left and ``delay()`` gives a time."""
    attempts = claim.attempts + 1
    pause = delay() if attempts < claim.max_attempts else None
    return Outcome(
        ending=Ending.FAILED if pause is None else Ending.RETRIED,
        job_id=claim.job_id,
        token=claim.token,
        queue_name=claim.queue_name,
        rank=claim.rank,
        concurrency_key=claim.concurrency_key,
        attempts=attempts,
        worker_ids=with_worker(claim.worker_ids, worker),
        errors=appended(claim.errors, failure),
        started_at=claim.started_at or started_at,
        last_attempted_at=started_at,
        delay=pause or 0.0,
        exception_class=failure.exception_class,
        message=failure.message,
    )


def postponed(claim: ClaimedJob, errors: str | None, delay: float) -> Outcome:
    """The job was not started, and is not to be for ``delay`` seconds: no attempt is counted."""
    return Outcome(
        ending=Ending.RETRIED,
        job_id=claim.job_id,
        token=claim.token,
        queue_name=claim.queue_name,
        rank=claim.rank,
        concurrency_key=claim.concurrency_key,
        attempts=claim.attempts,
        worker_ids=claim.worker_ids,
        errors=errors,
        started_at=claim.started_at,
        last_attempted_at=claim.started_at,
        delay=delay,
    )


def unreadable(
    claim: ClaimedJob, worker: str, started_at: datetime, error: BaseException
) -> Outcome:
    """Nothing can be made of the job's row: it fails, and what the row said is not used."""
    failure = describe(error)
    return Outcome(
        ending=Ending.FAILED,
        job_id=claim.job_id,
        token=claim.token,
        queue_name=claim.queue_name,
        rank=claim.rank,
        concurrency_key=claim.concurrency_key,
        attempts=1,
        worker_ids=with_worker(None, worker),
        errors=appended(None, failure),
        started_at=started_at,
        last_attempted_at=started_at,
        exception_class=failure.exception_class,
        message=failure.message,
    )


def released(claim: ClaimedJob) -> Outcome:
    """The job was not started: it is ready again, and no attempt is counted."""
    return Outcome(
        ending=Ending.RELEASED,
        job_id=claim.job_id,
        token=claim.token,
        queue_name=claim.queue_name,
        rank=claim.rank,
        concurrency_key=claim.concurrency_key,
    )


def with_worker(worker_ids: str | None, worker: str) -> str:
    """Return the stored list of workers with one more."""
    if not worker_ids:
        return f'["{worker}"]'
    return json.dumps([*workers_of(worker_ids), worker])
