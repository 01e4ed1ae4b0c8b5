"""The results that a backend returns: of calls that are stored, and of jobs that exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from .compat import TaskResult, TaskResultDoesNotExist, TaskResultStatus
from .dialects import EnqueuedJob, KeyTaken, Refused
from .encoded_call import EncodedCall
from .errors import AlreadyFinished, DuplicateTask, SteadyQueueError
from .tasks.metadata import JobMetadata
from .tasks.results import task_result_of
from .tasks.task_result import SteadyQueueTaskResult, evolve
from .timezones import from_utc

#: Most results that are read at once.
MOST_READ = 1000
#: What a result gets that was pending until its job was stored.
OF_STORED = ("id", "status", "enqueued_at", "discarded")

#: Returns the results of those of some jobs that exist, by their ids.
ResultsOf = Callable[[Sequence[int]], Mapping[int | None, TaskResult]]


def result_of_call(call: EncodedCall, alias: str, new: EnqueuedJob | None = None) -> TaskResult:
    """Return the result of a call that has not run. ``new`` is ``None`` until it is stored."""
    discarded = new is not None and new.job_id is None
    return SteadyQueueTaskResult(
        task=call.task,
        id="" if new is None or new.job_id is None else str(new.job_id),
        status=TaskResultStatus.FAILED if discarded else TaskResultStatus.READY,
        enqueued_at=from_utc(new.enqueued_at) if new is not None else None,
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=list(call.args),
        kwargs=dict(call.kwargs),
        backend=alias,
        errors=[],
        worker_ids=[],
        discarded=discarded,
        duplicate=new is not None and new.is_duplicate,
        metadata=JobMetadata.shown_in(call.metadata),
    )


def stored_job(using: str, result_id: str) -> Any:
    """Return the job of a result. Raises ``TaskResultDoesNotExist``."""
    from .models.job import find_job

    job = find_job(using, result_id)
    if job is None:
        raise TaskResultDoesNotExist(result_id)
    return job


def stored_results(using: str, job_ids: Sequence[int]) -> dict[int | None, TaskResult]:
    """Return the results of those of these jobs that exist."""
    from .models import Job

    found: dict[int | None, TaskResult] = {}
    for start in range(0, len(job_ids), MOST_READ):
        some = Job._default_manager.using(using).filter(pk__in=job_ids[start : start + MOST_READ])
        rows: Any = some.select_related("claimedexecution", "failedexecution")
        found |= {job.pk: task_result_of(job) for job in rows}
    return found


def results_of_calls(
    calls: Sequence[EncodedCall], stored: Sequence[EnqueuedJob], alias: str, results_of: ResultsOf
) -> list[TaskResult]:
    """Return the results of calls that were stored; of those that were duplicates, the results of
    the jobs that have their keys."""
    results = [result_of_call(call, alias, new) for call, new in zip(calls, stored, strict=True)]
    if any(new.is_duplicate for new in stored):
        _show_others(stored, results, results_of)
    return results


def _show_others(
    stored: Sequence[EnqueuedJob], results: list[TaskResult], results_of: ResultsOf
) -> None:
    """Put the results of the jobs that have the keys of others in place of theirs."""
    found = results_of([
        new.job_id for new in stored if new.is_duplicate and new.job_id is not None
    ])  # fmt: skip
    for number, new in enumerate(stored):
        # A job that is not preserved may have finished meanwhile.
        if new.is_duplicate and (result := found.get(new.job_id)) is not None:
            results[number] = _marked(result)


def refusal(
    refused: Refused, calls: Sequence[EncodedCall], alias: str, results_of: ResultsOf
) -> SteadyQueueError:
    """Return the error of calls that the database has refused."""
    if isinstance(refused, KeyTaken):
        return _duplicate_of(calls, refused, alias, results_of)
    return AlreadyFinished(
        f"The calls were not enqueued: {refused}. Enqueue them outside, or in another batch."
    )


def _duplicate_of(
    calls: Sequence[EncodedCall], taken: KeyTaken, alias: str, results_of: ResultsOf
) -> DuplicateTask:
    """Return the error of a call whose key another job has, with the result of that job."""
    call, job_id = calls[taken.number], taken.job_id
    what = f"{call.task.module_path} was not enqueued: its unique key, {taken.key!r},"
    if job_id is None:
        return DuplicateTask(f"{what} is that of another call of the same bulk.")
    result = results_of([job_id]).get(job_id)
    if result is None:
        other = EnqueuedJob(job_id, datetime.now(UTC), is_duplicate=True)
        result = result_of_call(call, alias, other)
    return DuplicateTask(f"{what} is taken by job {job_id}.", result=_marked(result), job_id=job_id)


def complete(pending: TaskResult, stored: TaskResult) -> None:
    """Give a pending result what that of the stored job has."""
    # A duplicate is another job altogether.
    names = [each.name for each in fields(stored)] if is_duplicate(stored) else OF_STORED
    evolve(pending, **{name: getattr(stored, name) for name in names})


def is_duplicate(result: TaskResult) -> bool:
    """Whether a result is that of another job, which has the unique key of the call."""
    return bool(getattr(result, "duplicate", False))


def _marked(result: TaskResult) -> TaskResult:
    """Return the result of another job as what a call gets that was a duplicate of it."""
    evolve(result, duplicate=True)
    return result
