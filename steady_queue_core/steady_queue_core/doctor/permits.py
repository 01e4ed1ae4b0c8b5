"""Concurrency limits that let fewer jobs run than they should."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce, Greatest

from ..listings.wording import name
from ..models import BlockedExecution, ClaimedExecution, Permit, ReadyExecution, Semaphore
from .finding import Finding, warning
from .limits import MAINTENANCE, MOST, holders
from .patient import Patient
from .round import few


def miscounted(patient: Patient) -> Iterator[Finding]:
    blocked = BlockedExecution.objects.using(patient.using).order_by("pk")
    keys = set(blocked.values_list("concurrency_key", flat=True)[:MOST])
    yield from few(_is_miscounted(key, limit) for key, limit in _wrong(patient, keys))


def of_key(patient: Patient, key: str) -> Iterator[Finding]:
    """Yield that a key which blocks a job lets fewer run than it should."""
    yield from (_is_miscounted(*each) for each in _wrong(patient, [key]))


def _is_miscounted(key: object, limit: object) -> Finding:
    return warning(
        "limit-miscounted",
        f"The concurrency key {name(key)!r} blocks jobs, and fewer than {name(limit)} run: permits "
        "are free, or belong to jobs that neither wait nor run.",
        MAINTENANCE,
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
