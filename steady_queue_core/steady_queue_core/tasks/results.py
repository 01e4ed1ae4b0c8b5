"""Builds task results from jobs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .. import arguments
from ..arguments import DeserializationError
from ..compat import Task, TaskError, TaskResult, TaskResultStatus
from ..dialects import portable
from ..errors import UnregisteredTaskError
from ..payloads import PayloadError
from ..payloads.backends import limits_of
from ..timezones import from_utc
from .copies import rebuilt
from .metadata import JobMetadata
from .registry import find_task
from .stand_ins import unregistered
from .stored_errors import items_of, stored_errors
from .stored_payloads import call_text, result_text
from .task_result import SteadyQueueTaskResult, evolve

if TYPE_CHECKING:
    from ..models import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyQueueTaskError(TaskError):  # type: ignore[misc]  # The stubs miss frozen=True.
    """An error of one attempt. Its exception class is looked up but never imported, because the
    path comes from a row."""

    @property
    def exception_class(self) -> type[BaseException]:
        """The class of the exception.

        Raises ``ImportError`` if the path is in no module that this process has imported, and
        ``ValueError`` if it is not that of an exception.
        """
        path = str(self.exception_class_path)
        found = _imported(path)
        if found is None:
            raise ImportError(
                f"{path!r} is in no module that this process has imported. Import its module "
                "first, or use exception_class_path: a row never decides what is imported."
            )
        if not (issubclass(type(found), type) and issubclass(found, BaseException)):
            raise ValueError(f"{path!r} does not reference a valid exception.")
        return found  # type: ignore[no-any-return]  # Checked above.


def _imported(path: str) -> Any:
    """Return the object at ``path`` if its module is imported."""
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:length]))
        if found is not None:
            for name in parts[length:]:
                # Not by getattr(), which can run code of modules and classes.
                found = getattr(found, "__dict__", {}).get(name)
            return found
    return None


def task_of(
    path: str, backend: str, queue_name: str, rank: int, run_after: datetime | None = None
) -> Task:
    """Return the task of a job as it was enqueued, or a stand-in if it is not registered."""
    try:
        task = find_task(path)
    except UnregisteredTaskError:
        task = unregistered(path, backend)
    as_enqueued: Task = rebuilt(
        task, backend=backend, queue_name=queue_name, priority=-rank, run_after=run_after
    )
    return as_enqueued


def task_result_of(job: Job) -> TaskResult:
    """Return the result of a job, from its row, claim and failure."""
    claim = getattr(job, "claimedexecution", None)
    worker_ids = workers_of(job.worker_ids)
    status, started_at, last_attempted_at = TaskResultStatus.READY, job.started_at, None
    if job.finished_at is not None:
        failed = getattr(job, "failedexecution", None) is not None
        status = TaskResultStatus.FAILED if failed else TaskResultStatus.SUCCESSFUL
    elif claim is not None:
        status = TaskResultStatus.RUNNING
        worker_ids.append(claim.worker_name)
        started_at = started_at or claim.created_at
        last_attempted_at = claim.created_at
    args, kwargs = _call_of(job)
    run_after = _instant(job.scheduled_at)
    result: TaskResult = SteadyQueueTaskResult(
        task=task_of(job.task_path, job.backend_name, job.queue_name, job.rank, run_after),
        id=str(job.pk),
        status=status,
        enqueued_at=_instant(job.enqueued_at),
        started_at=_instant(started_at),
        finished_at=_instant(job.finished_at),
        last_attempted_at=_instant(last_attempted_at or job.last_attempted_at),
        args=args,
        kwargs=kwargs,
        backend=job.backend_name,
        errors=task_errors(job.errors),
        worker_ids=worker_ids,
        metadata=JobMetadata.read(job.metadata).shown,
        progress=job.progress,
    )
    if job.return_value is not None:
        evolve(result, _return_value=_value_of(job))
    return result


def task_errors(text: str | None) -> list[TaskError]:
    """Return the errors of a job's attempts from their stored form."""
    return [
        SteadyQueueTaskError(exception_class_path=path, traceback=traceback)
        for path, traceback in errors_of(text)
    ]


def errors_of(text: str | None) -> list[list[str]]:
    """Return ``[exception path, traceback]`` of each failed attempt from the stored list."""
    return [[each.path, each.traceback] for each in stored_errors(text)]


def workers_of(text: str | None) -> list[str]:
    """Return the worker of each attempt from the stored list, without damaged entries."""
    return [each for each in items_of(text) if isinstance(each, str)]


def _instant(value: datetime | None) -> datetime | None:
    return from_utc(portable.aware(value)) if value is not None else None


def _call_of(job: Job) -> tuple[list[Any], dict[str, Any]]:
    limits = limits_of(job.backend_name)
    try:
        return arguments.decode_call(call_text(job), resolve_models=False, limits=limits)
    except DeserializationError:
        return [], {}


def _value_of(job: Job) -> Any:
    """Return the return value, or the error that says why it must not be decoded."""
    limits = limits_of(job.backend_name)
    try:
        return arguments.decode(result_text(job), resolve_models=False, limits=limits)
    except PayloadError as error:
        return error
    except DeserializationError:
        return None
