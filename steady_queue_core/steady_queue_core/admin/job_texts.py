"""Sections with the arguments, metadata, checkpoint, result and errors of a job."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import arguments
from ..arguments import DeserializationError
from ..listings.payloads import (
    MOST_PRETTY,
    MOST_READ,
    TOO_LONG,
    UNREADABLE,
    formatted,
    shown_call,
    shown_result,
)
from ..listings.redaction import Redactor
from ..payloads import PayloadError
from ..tasks.metadata import JobMetadata
from ..tasks.results import workers_of
from ..tasks.stored_errors import MOST_READ as MOST_STORED
from ..tasks.stored_errors import latest_errors
from ..tasks.stored_payloads import call_text, checkpoint_text
from . import texts
from .detail import Section, Text, Tracebacks
from .tracebacks import pieces_of

#: Number of errors shown, the most recent ones.
MOST_ERRORS = 20


def arguments_section(job: Any, opened: Callable[[Any], str] = call_text) -> Section:
    """Return the arguments of the call, one per line; see ``shown_call()``."""
    call = shown_call(job, opened)
    if not call.is_readable:
        return Text("Arguments", [], call.note)
    shown = ",\n".join(call.lines()) or "(none)"
    return Text("Arguments", [("", texts.clean(shown))], call.note)


def result_section(job: Any) -> Section | None:
    """Return the result, if there is one; see ``shown_result()``."""
    result = shown_result(job)
    if result is None:
        return None
    return Text("Result", [] if result.note else [("", texts.clean(result.text))], result.note)


def checkpoint_section(job: Any) -> Section | None:
    """Return the checkpoint that the job's attempts have stored last, if there is one. What is
    named like a secret in it is hidden."""
    title, stored = "Checkpoint", getattr(getattr(job, "checkpoint", None), "data", None)
    if stored is None:
        return None
    shown, note = stored_value(stored, partial(checkpoint_text, job))
    return Text(title, [] if note else [("", shown)], note)


def stored_value(stored: Any, opened: Callable[[str], str], name: str = "") -> tuple[str, str]:
    """Return the text of a value that a task has stored, or why it is not shown. What is named like
    a secret is hidden; ``name``: that of the value. ``opened`` takes it out of its stored form."""
    text = str(stored)  # SQLite lets a row hold something other than text.
    if len(text) > MOST_READ:
        return "", TOO_LONG.format(len(text))
    try:
        text = opened(text)
        value = arguments.decode(text, resolve_models=False)
    except PayloadError as error:
        return "", str(error)
    except DeserializationError:
        return "", UNREADABLE.format(len(text))
    shown = Redactor().redact(value, name) if name else Redactor().redact(value)
    return texts.clean(formatted(shown, len(text) <= MOST_PRETTY)), ""


def metadata_section(metadata: JobMetadata, size: int) -> Section | None:
    """Return what the caller has passed as metadata, if that is anything. What is named like a
    secret in it is hidden."""
    return _shown("Metadata", Redactor().redact(metadata.shown), size) if metadata.shown else None


def stored_section(title: str, stored: object) -> Section | None:
    """Return an encoded value, if there is one. What is named like a secret in it is hidden."""
    if stored is None:
        return None
    text = str(stored)  # SQLite lets a row hold something other than text.
    if len(text) > MOST_READ:
        return Text(title, [], TOO_LONG.format(len(text)))
    try:
        value = arguments.decode(text, resolve_models=False)
    except DeserializationError:
        return Text(title, [], UNREADABLE.format(len(text)))
    return _shown(title, Redactor().redact(value), len(text))


def _shown(title: str, value: Any, size: int) -> Section:
    return Text(title, [("", texts.clean(formatted(value, size <= MOST_PRETTY)))])


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
