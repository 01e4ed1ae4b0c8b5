"""What dispatchers leave undone: scheduled jobs that are overdue, and jobs that stay too long."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from ..configured_backends import backends_on
from ..dialects import portable
from ..listings.wording import duration
from ..models import FailedExecution, Job, Retention
from .finding import Finding, many, problem, warning
from .patient import Patient

START = (
    "Start a dispatcher: python manage.py steady_queue --only dispatch, or leave "
    "STEADY_QUEUE['dispatchers'] out to have one beside the workers."
)
#: A dispatcher clears in passes.
GRACE = timedelta(hours=1)
#: So many of the oldest jobs are looked at.
MOST = 100


def overdue(patient: Patient) -> Iterator[Finding]:
    late = patient.overdue
    if not (late.number and late.first is not None and patient.is_alive):
        return
    age = duration(patient.present - portable.aware(late.first))
    text = f"{many(late, 'scheduled job is', 'scheduled jobs are')} overdue, the first by {age}"
    if patient.live("dispatcher"):
        yield warning(
            "dispatcher-late",
            f"{text}, although a dispatcher is alive.",
            "See in its log what it fails at; with many due jobs, raise the batch_size of "
            "STEADY_QUEUE['dispatchers'], or start another one.",
        )
    else:
        yield missing(f"{text}, and no dispatcher is alive to make them ready.")


def missing(text: str) -> Finding:
    """Return the finding that no dispatcher lives."""
    return problem("dispatcher-missing", text, START)


def undone(patient: Patient) -> Iterator[Finding]:
    periods = _periods(patient.using)
    if not periods or patient.live("dispatcher"):
        return
    limit = patient.present - min(periods.values()) - GRACE
    jobs = Job.objects.using(patient.using).filter(finished_at__lt=portable.storable(limit))
    oldest = jobs.order_by("finished_at").values_list("pk", "finished_at", "backend_name")[:MOST]
    kept = _kept(patient.using, [pk for pk, _, _ in oldest])
    for pk, finished_at, backend in oldest:
        assert finished_at is not None  # Or it would not be before the limit.
        period = periods.get(backend)
        age = patient.present - portable.aware(finished_at)
        if pk not in kept and period is not None and age > period + GRACE:
            yield warning(
                "retention-undone",
                f"Job {pk} has finished {duration(age)} ago and was to be deleted after "
                f"{duration(period)}: no dispatcher is alive, which does that.",
                START,
            )
            return


def _periods(using: str) -> dict[str, timedelta]:
    found = {
        alias: backend.settings.clear_finished_jobs_after
        for alias, backend in backends_on(using).items()
    }
    return {alias: period for alias, period in found.items() if period is not None}


def _kept(using: str, ids: list[int]) -> set[int]:
    """Return those of these jobs that have failed, or that say themselves how long they stay."""
    failed = FailedExecution.objects.using(using).filter(pk__in=ids)
    own = Retention.objects.using(using).filter(pk__in=ids)
    return {*failed.values_list("pk", flat=True), *own.values_list("pk", flat=True)}
