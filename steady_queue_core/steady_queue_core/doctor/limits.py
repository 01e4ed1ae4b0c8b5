"""Concurrency limits that block jobs although nobody holds a permit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from ..listings.wording import name
from ..models import BlockedExecution, ClaimedExecution, Permit, ReadyExecution
from .finding import Finding, problem
from .patient import Patient
from .round import few

MOST = 1_000


def stuck(patient: Patient) -> Iterator[Finding]:
    rows = BlockedExecution.objects.using(patient.using)
    first = rows.order_by("concurrency_key", "rank", "job").values_list("pk", flat=True)
    ids = list(first[:MOST])
    # In one statement: permits pass from job to job meanwhile.
    without = rows.filter(~Exists(holders(patient, OuterRef("concurrency_key"))), pk__in=ids)
    found = first_jobs(without.order_by("pk"))
    yield from few(is_stuck(patient, *each) for each in found.items())


def first_jobs(blocked: QuerySet[BlockedExecution]) -> dict[str, int]:
    """Return the first of these jobs of each key."""
    found: dict[str, int] = {}
    for key, job_id in blocked.values_list("concurrency_key", "pk"):
        found.setdefault(key, job_id)
    return found


def holders(patient: Patient, key: Any) -> QuerySet[Permit]:
    """Return the permits of a key that belong to a job which is ready or runs."""
    using = patient.using
    ready = ReadyExecution.objects.using(using).filter(pk=OuterRef("pk"))
    claimed = ClaimedExecution.objects.using(using).filter(pk=OuterRef("pk"))
    return Permit.objects.using(using).filter(Exists(ready) | Exists(claimed), key=key)


def is_stuck(patient: Patient, key: object, job_id: int) -> Finding:
    """Return the finding that a key blocks jobs, this one among them, and nobody holds it."""
    return problem(
        "limit-stuck",
        f"Jobs are blocked by the concurrency key {name(key)!r}, which no job holds.",
        maintenance(patient, job_id),
    )


def maintenance(patient: Patient, job_id: int) -> str:
    """Return what to do about a key whose permits are wrong, and about a job that it blocks."""
    return (
        "A dispatcher with concurrency_maintenance repairs it, every 10 minutes by default: see "
        f"that one is alive. Single jobs can run now: {patient.command('run-now', job_id)}"
    )


EXAMINATIONS = (stuck,)
