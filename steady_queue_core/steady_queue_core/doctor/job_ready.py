"""Ready jobs: what keeps workers from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..listings.counts import CAP, BoundedCount, count_each
from ..listings.wording import between
from ..models import Job, ReadyExecution
from . import job_task, queues
from .finding import Finding, info
from .patient import Patient
from .processes import none_alive
from .words import many


def findings(patient: Patient, job: Job, row: Any) -> Iterator[Finding]:
    """Yield why a ready job has not been claimed."""
    queue = patient.queue(row.queue_name)
    if queue is not None and queue.is_paused:
        yield queues.is_paused(patient, queue)
    if not patient.is_alive:
        yield from none_alive(patient)
    elif queue is not None and not queue.workers:
        yield queues.is_unserved(patient, queue)
    yield from job_task.findings(patient, job)
    yield _place(patient, job, row)


def _place(patient: Patient, job: Job, row: Any) -> Finding:
    rows = ReadyExecution.objects.using(patient.using).filter(queue_name=row.queue_name)
    # Two ranges of the index: with OR, a database may read the jobs behind this one as well.
    parts = (rows.filter(rank__lt=row.rank), rows.filter(rank=row.rank, turn__lt=row.turn))
    more_urgent, earlier = count_each(
        patient.using, [part.order_by("rank", "turn") for part in parts]
    )
    number = min(more_urgent.number + earlier.number, CAP)
    ahead = BoundedCount(number, more_urgent.exact and earlier.exact)
    return info(
        "job-ready",
        f"Job {job.pk} has been ready for {between(row.created_at, patient.present)}; "
        f"{many(ahead, 'job')} of queue {queues.quoted(row.queue_name)} before it. "
        f"{queues.load(patient, row.queue_name)}",
        "If it has to come sooner: a higher priority, a queue of its own, or more workers.",
    )
