"""Threads of workers that have had the same jobs for long, while others wait for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta

from ..dialects import portable
from ..listings.processes import ListedProcess
from ..listings.wording import duration, name
from ..models import ClaimedExecution
from .finding import Finding, warning
from .patient import Patient
from .processes import described
from .queues import threads_of, waits_long
from .round import few
from .words import many

#: A job that runs longer holds its thread.
LONG = timedelta(minutes=5)
#: Whoever has lost this share of the threads is told of.
SHARE = 0.5
#: Claims that are looked at, those of the longest first.
MOST = 1_000


def held(patient: Patient) -> Iterator[Finding]:
    """Workers most of whose threads have had the same jobs for long."""
    slow = [each.name for each in patient.queues if waits_long(each)]
    workers = {each.pk: each for each in patient.processes if any(map(each.serves, slow))}
    claims = defaultdict(list)
    for claim in _long_claims(patient, list(workers)):
        claims[claim.process_id].append(claim)
    yield from few(
        _is_held(patient, workers[process], of_process)
        for process, of_process in claims.items()
        if len(of_process) >= SHARE * threads_of(workers[process]) > 0
    )


def _long_claims(patient: Patient, workers: list[int]) -> list[ClaimedExecution]:
    if not workers:
        return []
    rows = ClaimedExecution.objects.using(patient.using).filter(
        process_id__in=workers, created_at__lt=portable.storable(patient.present - LONG)
    )
    rows = rows.select_related("job").only("process_id", "created_at", "job__task_path")
    return list(rows.order_by("created_at", "pk")[:MOST])


def _is_held(patient: Patient, process: ListedProcess, claims: list[ClaimedExecution]) -> Finding:
    threads, first = threads_of(process), claims[0]
    age = patient.present - portable.aware(first.created_at)
    return warning(
        "threads-held",
        f"{min(len(claims), threads)} of {many(threads, 'thread')} of {described(process)} have "
        f"had the same jobs for up to {duration(age)}, while others wait: job {first.pk} "
        f"({name(first.job.task_path)}) for the longest.",
        "See what they do: kill -USR2 to its supervisor logs that. To end that one: "
        f"{patient.command('cancel', first.pk)}. A timeout ends such attempts by itself.",
    )


EXAMINATIONS = (held,)
