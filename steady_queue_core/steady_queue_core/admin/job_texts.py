"""Sections with the arguments, metadata, checkpoint, steps, result and errors of a job."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.db.models import Case, F, When
from django.db.models.functions import Length

from ..listings.damage import DAMAGED, suppress_damage
from ..listings.payloads import (
    TOO_LONG,
    UNREADABLE,
    Redactor,
    ShownValue,
    shown_call,
    shown_result,
    shown_value,
)
from ..tasks.metadata import JobMetadata
from ..tasks.results import workers_of
from ..tasks.stored_errors import MOST_READ as MOST_STORED
from ..tasks.stored_errors import latest_errors
from ..tasks.stored_payloads import call_text, checkpoint_text, step_text
from . import texts
from .detail import Section, Text, Tracebacks, pieces_of

#: Number of errors shown, the most recent ones.
MOST_ERRORS = 20
#: Number of steps shown, the last ones.
MOST_STEPS = 100
#: Longer values are not read: a page shows many.
MOST_READ = 20_000


def arguments_section(job: Any, opened: Callable[[Any], str] = call_text) -> Section:
    """Return the arguments of the call, one per line; see ``shown_call()``."""
    call = shown_call(job, opened)
    if not call.is_readable:
        return Text("Arguments", [], call.note)
    shown = ",\n".join(call.lines()) or "(none)"
    return Text("Arguments", [("", texts.clean(shown))], call.note)


def result_section(job: Any) -> Section | None:
    """Return the result, if there is one; see ``shown_result()``."""
    return _shown("Result", shown_result(job))


def checkpoint_section(job: Any) -> Section | None:
    """Return the checkpoint that the job's attempts have stored last, if there is one."""
    stored = getattr(getattr(job, "checkpoint", None), "data", None)
    return stored_section("Checkpoint", stored, partial(checkpoint_text, job))


def stored_section(
    title: str, stored: object, opened: Callable[[str], str] = str
) -> Section | None:
    """Return a stored value, if there is one; see ``shown_value()``."""
    return _shown(title, None if stored is None else shown_value(stored, opened))


def metadata_section(metadata: JobMetadata, size: int) -> Section | None:
    """Return what the caller has passed as metadata, if that is anything. What is named like a
    secret in it is hidden."""
    value = ShownValue(Redactor().redact(metadata.shown), size=size) if metadata.shown else None
    return _shown("Metadata", value)


def _shown(title: str, value: ShownValue | None) -> Section | None:
    if value is None:
        return None
    return Text(title, [] if value.note else [("", texts.clean(value.text))], value.note)


def errors_section(job: Any) -> Section | None:
    """Return the errors with their tracebacks, most recent first."""
    if not job.errors:
        return None
    errors, total, is_too_long = latest_errors(job.errors, MOST_ERRORS)
    if is_too_long:
        return Text("Errors", [], TOO_LONG.format(len(job.errors)))
    if not errors:
        return Text("Errors", [("", texts.clean(job.errors))], UNREADABLE.format(len(job.errors)))
    parts = [
        (f"{number}. {texts.name(error.path)}", pieces_of(texts.clean(error.traceback)))
        for number, error in reversed(errors)
    ]
    note = "" if total <= MOST_ERRORS else f"The last {MOST_ERRORS} of {total} errors."
    return Tracebacks("Errors, most recent first", parts, note)


def workers(job: Any) -> str:
    """Return the workers of the attempts, in order."""
    if len(job.worker_ids or "") > MOST_STORED:
        return TOO_LONG.format(len(job.worker_ids))
    found = workers_of(job.worker_ids)
    return texts.clean(", ".join(found[-MOST_ERRORS:]))


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
