"""Concurrency limits that let fewer jobs run than they should."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce, Greatest

from ..listings.wording import name
from ..models import BlockedExecution, ClaimedExecution, Permit, ReadyExecution, Semaphore
from .finding import Finding, warning
from .limits import MOST, first_jobs, holders, maintenance
from .patient import Patient
from .round import few


def miscounted(patient: Patient) -> Iterator[Finding]:
    blocked = BlockedExecution.objects.using(patient.using).order_by("pk")
    yield from few(of_keys(patient, first_jobs(blocked[:MOST])))


def of_keys(patient: Patient, jobs: Mapping[str, int]) -> Iterator[Finding]:
    """Yield which keys let fewer jobs run than they should; each blocks one of ``jobs``."""
    for key, limit in _wrong(patient, jobs):
        yield _is_miscounted(patient, key, limit, jobs[key])


def _is_miscounted(patient: Patient, key: str, limit: object, job_id: int) -> Finding:
    return warning(
        "limit-miscounted",
        f"The concurrency key {name(key)!r} blocks jobs, and fewer than {name(limit)} run: permits "
        "are free, or belong to jobs that neither wait nor run.",
        maintenance(patient, job_id),
    )


def _wrong(patient: Patient, keys: Collection[str]) -> list[tuple[str, int]]:
    """Return those of the keys that block jobs for no good reason, though not all jobs: these are
    stuck."""
    using, key = patient.using, OuterRef("pk")
    held = Permit.objects.using(using).filter(key=key).order_by()
    number = held.values("key").annotate(number=Count("pk")).values("number")
    left = Greatest(F("limit") - Coalesce(Subquery(number), Value(0)), Value(0))
    waiting = BlockedExecution.objects.using(using).filter(concurrency_key=key)
    free = Greatest(F("value"), Value(0))
    semaphores: Any = Semaphore.objects.using(using).filter(pk__in=list(keys))
    semaphores = semaphores.annotate(left=left, free=free)
    # In one statement: permits pass from job to job meanwhile.
    wrong = semaphores.filter(
        Q(value__gt=0) | ~Q(free=F("left")) | Q(Exists(_lost(using).filter(key=key))),
        Exists(waiting),
        Exists(holders(patient, key)),
    )
    return list(wrong.order_by("pk").values_list("pk", "limit"))


def _lost(using: str) -> Any:
    ready = ReadyExecution.objects.using(using).filter(pk=OuterRef("pk"))
    claimed = ClaimedExecution.objects.using(using).filter(pk=OuterRef("pk"))
    return Permit.objects.using(using).filter(~Exists(ready), ~Exists(claimed))


EXAMINATIONS = (miscounted,)
