"""Tasks that take longer than they get when a worker stops."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from ..dialects import portable
from ..errors import ReportedTaskError, TaskTimeout
from ..listings.wording import duration, name
from ..models import FailedExecution, Job
from .finding import Finding, warning
from .patient import Patient
from .words import path_of

RECENT = timedelta(hours=1)
MOST = 1_000


def shutdown_timeout(patient: Patient) -> Iterator[Finding]:
    since = portable.storable(patient.present - RECENT)
    ended = Job.objects.using(patient.using).filter(finished_at__gte=since)
    columns = ("pk", "task_path", "last_attempted_at", "finished_at")
    latest = ended.order_by("-finished_at").values_list(*columns)[:MOST]
    timeout = patient.options.shutdown_timeout
    took = [
        (finished_at - started_at, pk, path)
        for pk, path, started_at, finished_at in latest
        if started_at is not None and finished_at - started_at > timeout
    ]
    others = _ended_by_others(patient.using, [pk for _, pk, _ in took])
    ran = [each for each in took if each[1] not in others]
    if ran:
        longest, pk, path = max(ran)
        yield warning(
            "shutdown-timeout-short",
            f"Job {pk} ({name(path)}) took {duration(longest)}, and a worker that stops interrupts "
            f"tasks after {duration(timeout)}.",
            "Raise STEADY_QUEUE['shutdown_timeout'] beyond that, and the time that whatever "
            "stops the supervisor gives it; or let the task continue from a checkpoint.",
        )


def _ended_by_others(using: str, ids: list[int]) -> set[int]:
    """Return those of these jobs that have not ended when their last attempt did: somebody has
    cancelled them, they expired, or their process was lost."""
    failed = FailedExecution.objects.using(using).filter(pk__in=ids)
    of_queue = failed.filter(exception_class__startswith=f"{TaskTimeout.__module__}.")
    own = [path_of(each) for each in (TaskTimeout, ReportedTaskError)]
    return {*of_queue.exclude(exception_class__in=own).values_list("pk", flat=True)}


EXAMINATIONS = (shutdown_timeout,)
