"""Arguments, results and errors of a job as its page shows them."""

from __future__ import annotations

from pprint import pformat
from typing import Any

from django.views.debug import get_default_exception_reporter_filter

from .. import arguments
from ..arguments import DeserializationError
from ..results import errors_of, workers_of
from . import texts
from .detail import Section, Text

#: Longer than this, stored text is shown as it is, cut, and not read.
MOST_READ = 100_000
#: Errors shown, the last ones.
MOST_ERRORS = 20
UNREADABLE = "This cannot be read; it is shown as it is stored."
TOO_LONG = "This is too long to be read here; its beginning is shown as it is stored."


def arguments_of(job: Any) -> Section:
    """Return the arguments of the call, one part each; what looks like a secret is masked as in
    Django's error pages."""
    title = "Arguments"
    if len(job.arguments) > MOST_READ:
        return Text(title, [("", texts.clean(job.arguments))], TOO_LONG)
    try:
        args, kwargs = arguments.decode_call(job.arguments, resolve_models=False)
    except DeserializationError:
        return Text(title, [("", texts.clean(job.arguments))], UNREADABLE)
    mask: Any = get_default_exception_reporter_filter().cleanse_setting
    lines = [_pretty(mask("", value)) for value in args]
    lines += [f"{name}={_pretty(mask(name, value))}" for name, value in kwargs.items()]
    return Text(title, [("", texts.clean(",\n".join(lines) or "(none)"))])


def result_of(job: Any) -> Section | None:
    """Return what the task returned, if it has."""
    if job.return_value is None:
        return None
    if len(job.return_value) > MOST_READ:
        return Text("Result", [("", texts.clean(job.return_value))], TOO_LONG)
    try:
        value = arguments.decode(job.return_value, resolve_models=False)
    except DeserializationError:
        return Text("Result", [("", texts.clean(job.return_value))], UNREADABLE)
    return Text("Result", [("", texts.clean(_pretty(value)))])


def errors_of_attempts(job: Any) -> Section | None:
    """Return the errors with their tracebacks, the last one first."""
    if not job.errors:
        return None
    errors = errors_of(job.errors)
    if not errors:
        return Text("Errors", [("", texts.clean(job.errors))], UNREADABLE)
    numbered = list(enumerate(errors, start=1))[-MOST_ERRORS:]
    parts = [
        (f"{position}. {texts.name(path)}", texts.clean(traceback))
        for position, (path, traceback) in reversed(numbered)
    ]
    note = "" if len(errors) <= MOST_ERRORS else f"The last {MOST_ERRORS} of {len(errors)} errors."
    return Text("Errors, the last one first", parts, note)


def workers(job: Any) -> str:
    """Return the workers of the attempts, in their order."""
    found = workers_of(job.worker_ids)
    return texts.clean(", ".join(found[-MOST_ERRORS:]))


def _pretty(value: Any) -> str:
    return pformat(value, width=100, sort_dicts=False)
