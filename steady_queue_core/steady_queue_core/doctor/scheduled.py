"""Scheduled jobs that are overdue."""

from __future__ import annotations

from collections.abc import Iterator

from ..dialects import portable
from ..listings.wording import duration
from .finding import Finding, problem, warning
from .patient import Patient
from .words import many

START = (
    "Start a dispatcher: python manage.py steady_queue --only dispatch, or leave "
    "STEADY_QUEUE['dispatchers'] out to have one beside the workers."
)


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


EXAMINATIONS = (overdue,)
