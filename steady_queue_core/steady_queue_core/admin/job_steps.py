"""The section with the durable steps of a job."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db.models import Case, F, When
from django.db.models.functions import Length

from ..listings.damage import DAMAGED, suppress_damage
from ..listings.payloads import TOO_LONG, shown_value
from ..tasks.stored_payloads import step_text
from . import texts
from .detail import Section, Text

#: Number of steps shown, the last ones.
MOST_STEPS = 100
#: Longer values are not read: a page shows many.
MOST_READ = 20_000


def steps_section(job: Any) -> Section | None:
    """Return the steps that the job's attempts have taken, with their values, if there are any."""
    rows = job.steps.defer("data").annotate(
        size=Length("data"), short=Case(When(size__lte=MOST_READ, then=F("data")))
    )
    found = None
    with suppress_damage():
        found = list(rows.order_by("-position", "-pk")[: MOST_STEPS + 1])
    if found is None:
        return Text("Steps", [], DAMAGED)
    if not found:
        return None
    parts = [_part(job, step) for step in reversed(found[:MOST_STEPS])]
    note = "" if len(found) <= MOST_STEPS else f"The last {MOST_STEPS} steps."
    return Text("Steps", parts, note)


def _part(job: Any, step: Any) -> tuple[str, str]:
    """Return the heading of a step and its value, which is hidden if the step is named like a
    secret."""
    name, number = str(step.name), step.position
    if isinstance(number, int):  # SQLite lets a row hold something other than numbers.
        number += 1
    heading = f"{texts.name(number)}. {texts.name(name)}, {texts.moment(step.stored_at)}"
    if step.short is None:
        return heading, TOO_LONG.format(step.size)
    value = shown_value(step.short, partial(step_text, job, step), name)
    shown = value.note or texts.clean(value.text)
    return heading, f"sleep until {shown}" if step.is_sleep else shown
