"""Outcomes of claims: finished, failed, retried, postponed or released."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from ...dialects import ClaimedJob, Ending, Outcome, Sequel
from ...features.retention.period import FOREVER, Period
from ...fingerprint import fingerprint_of
from ...tasks.metadata import JobMetadata
from ...tasks.results import workers_of
from ..base.journal_reader import FinishedEntry
from .error_text import Attempted, Failure, appended, describe


def finished(
    claim: ClaimedJob, worker: str, started_at: datetime, return_value: str, preserve: bool
) -> Outcome:
    """Return the outcome of a task that returned."""
    link = None if claim.metadata is None else claim.link
    # Made in one step: most outcomes are of this kind.
    return Outcome(
        ending=Ending.FINISHED,
        job_id=claim.job_id,
        token=claim.token,
        queue_name=claim.queue_name,
        rank=claim.rank,
        concurrency_key=claim.concurrency_key,
        unique_key=None if claim.metadata is None else claim.unique_key,
        link=link,
        attempts=claim.attempts + 1,
        worker_ids=with_worker(claim.worker_ids, worker),
        errors=claim.errors,
        started_at=claim.started_at or started_at,
        last_attempted_at=started_at,
        return_value=return_value,
        # Results of graphs are passed on.
        preserve=preserve or (link is not None and link.has_dependents),
    )


def journaled(claim: ClaimedJob, worker: str, entry: FinishedEntry) -> Outcome:
    """Return the outcome of a task that returned, as the worker has noted it that did not live to
    store it."""
    outcome = finished(claim, worker, entry.started_at, entry.return_value, entry.preserve)
    # Only the dead process knows whether it has stored one.
    sequel = (outcome.sequel or Sequel())._replace(ends_checkpoint=True, ends_steps=True)
    return outcome._replace(sequel=sequel)


def unsuccessful(
    claim: ClaimedJob,
    worker: str,
    started_at: datetime,
    failure: Failure,
    delay: Callable[[], float | None],
    ended_at: datetime | None = None,
) -> Outcome:
    """Return the outcome of a failed attempt: a retry if an attempt is left and ``delay()`` returns
    the seconds until then."""
    attempts = claim.attempts + 1
    attempt = Attempted.of(attempts, started_at, ended_at, worker)
    pause = delay() if attempts < claim.max_attempts else None
    return released(claim)._replace(
        ending=Ending.FAILED if pause is None else Ending.RETRIED,
        attempts=attempts,
        worker_ids=with_worker(claim.worker_ids, worker),
        errors=appended(claim.errors, failure, attempt),
        started_at=claim.started_at or started_at,
        last_attempted_at=started_at,
        delay=pause or 0.0,
        **_last_error(claim, failure, is_final=pause is None),
    )


def postponed(claim: ClaimedJob, errors: str | None, delay: float) -> Outcome:
    """Return the outcome of a job that was not started and becomes ready in ``delay`` seconds.
    No attempt is counted."""
    return released(claim)._replace(
        ending=Ending.RETRIED,
        attempts=claim.attempts,
        worker_ids=claim.worker_ids,
        errors=errors,
        started_at=claim.started_at,
        last_attempted_at=claim.started_at,
        delay=delay,
    )


def crashed(
    claim: ClaimedJob,
    worker: str,
    started_at: datetime,
    failure: Failure,
    delay: float,
    ended_at: datetime | None = None,
) -> Outcome:
    """Return the outcome of a job that runs again in ``delay`` seconds because its process has
    ended. No attempt is counted, but the worker and the error are kept."""
    attempt = Attempted.of(None, started_at, ended_at, worker)
    return postponed(claim, appended(claim.errors, failure, attempt), delay)._replace(
        worker_ids=with_worker(claim.worker_ids, worker),
        started_at=claim.started_at or started_at,
        last_attempted_at=started_at,
        **_last_error(claim, failure, is_final=False),
    )


def never_started(claim: ClaimedJob, failure: Failure) -> Outcome:
    """Return the outcome of a job that was cancelled, or has expired, before it started. No attempt
    is counted."""
    return released(claim)._replace(
        ending=Ending.FAILED,
        attempts=claim.attempts,
        worker_ids=claim.worker_ids,
        errors=appended(claim.errors, failure),
        started_at=claim.started_at,
        last_attempted_at=claim.started_at,
        **_last_error(claim, failure),
    )


def snoozed(claim: ClaimedJob, started_at: datetime, delay: float) -> Outcome:
    """Return the outcome of a task that has put its job off. No attempt is counted."""
    return postponed(claim, claim.errors, delay)._replace(
        started_at=claim.started_at or started_at, last_attempted_at=started_at
    )


def unreadable(
    claim: ClaimedJob, worker: str, started_at: datetime, error: BaseException
) -> Outcome:
    """Return the outcome of a job whose row cannot be used: it fails, and the values of the row are
    discarded."""
    failure = describe(error)
    return released(claim)._replace(
        ending=Ending.FAILED,
        attempts=1,
        worker_ids=with_worker(None, worker),
        errors=appended(None, failure, Attempted.of(1, started_at, None, worker)),
        started_at=started_at,
        last_attempted_at=started_at,
        **_last_error(claim, failure),
    )


def released(claim: ClaimedJob) -> Outcome:
    """Return the outcome of a job that was not started and is ready again. No attempt is
    counted."""
    return Outcome(
        ending=Ending.RELEASED,
        job_id=claim.job_id,
        token=claim.token,
        queue_name=claim.queue_name,
        rank=claim.rank,
        concurrency_key=claim.concurrency_key,
        unique_key=claim.unique_key,
        link=claim.link,
    )


def _last_error(claim: ClaimedJob, failure: Failure, *, is_final: bool = True) -> dict[str, Any]:
    """Return what an outcome says of the error of its attempt; failures of jobs have prints."""
    name, message = failure.exception_class, failure.message
    fingerprint = fingerprint_of(name, message, claim.task_path) if is_final else None
    return {"exception_class": name, "message": message, "fingerprint": fingerprint}


def kept(outcome: Outcome, metadata: JobMetadata, usual: timedelta | None) -> Outcome:
    """Return ``outcome`` with what the metadata of its job say of how long it is kept.

    ``usual``: how long successful jobs of its backend are kept; ``None``: for ever.
    """
    period = {
        Ending.FINISHED: _as_long_as_its_key(outcome, metadata, usual),
        Ending.FAILED: metadata.failure_retention,
    }.get(outcome.ending)
    if period is None or (period == timedelta(0) and _is_awaited(outcome)):
        return outcome
    if outcome.ending is Ending.FINISHED:
        outcome = outcome._replace(preserve=period != timedelta(0))
    if outcome.deletes_job:
        return outcome
    sequel = outcome.sequel or Sequel(is_implied=True)
    return outcome._replace(sequel=sequel._replace(retention=period))


def _is_awaited(outcome: Outcome) -> bool:
    return outcome.link is not None and outcome.link.has_dependents


def _as_long_as_its_key(
    outcome: Outcome, metadata: JobMetadata, usual: timedelta | None
) -> Period | None:
    """Return how long a successful job is kept: its result is that of the calls that have its
    unique key meanwhile."""
    key, own = outcome.unique_key, metadata.retention
    if key is None or not key.keep or own == FOREVER:
        return own
    if isinstance(own, timedelta):
        return max(own, key.keep)
    is_kept_anyway = outcome.preserve and (usual is None or usual >= key.keep)
    return None if is_kept_anyway else key.keep


def with_worker(worker_ids: str | None, worker: str) -> str:
    """Return the stored list of workers with ``worker`` added."""
    if not worker_ids:
        return f'["{worker}"]'
    return json.dumps([*workers_of(worker_ids), worker])
