"""Tasks that take longer than they get when a worker stops."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from ..dialects import portable
from ..listings.wording import duration, name
from ..models import Job
from .finding import Finding, warning
from .patient import Patient

RECENT = timedelta(hours=1)
MOST = 1_000


def shutdown_timeout(patient: Patient) -> Iterator[Finding]:
    since = portable.storable(patient.present - RECENT)
    ended = Job.objects.using(patient.using).filter(finished_at__gte=since)
    columns = ("pk", "task_path", "last_attempted_at", "finished_at")
    took = [
        (finished_at - started_at, pk, path)
        for pk, path, started_at, finished_at in ended.order_by("-finished_at").values_list(
            *columns
        )[:MOST]
        if started_at is not None
    ]
    longest, pk, path = max(took, default=(timedelta(0), 0, ""))
    timeout = patient.options.shutdown_timeout
    if longest > timeout:
        yield warning(
            "shutdown-timeout-short",
            f"Job {pk} ({name(path)}) took {duration(longest)}, and a worker that stops interrupts "
            f"tasks after {duration(timeout)}.",
            "Raise STEADY_QUEUE['shutdown_timeout'] beyond that, and the time that whatever "
            "stops the supervisor gives it; or let the task continue from a checkpoint.",
        )


EXAMINATIONS = (shutdown_timeout,)
