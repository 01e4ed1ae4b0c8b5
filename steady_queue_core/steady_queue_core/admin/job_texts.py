"""Arguments, results and errors of a job as its page shows them."""

from __future__ import annotations

from itertools import zip_longest
from pprint import pformat
from typing import Any

from .. import arguments
from ..arguments import DeserializationError
from ..tasks.results import errors_of, workers_of
from . import texts
from .detail import Section, Text
from .masking import HIDDEN, Mask, parameters_of

#: Longer than this, stored text is not read.
MOST_READ = 2**20
#: Longer than this, it is not laid out, either: that takes a second for a megabyte.
MOST_LAID_OUT = 100_000
#: Errors shown, the last ones.
MOST_ERRORS = 20
UNREADABLE = "The {:,} characters that are stored cannot be read."
TOO_LONG = "The {:,} characters that are stored are too many to be shown."
UNKNOWN = "This process does not know the task: arguments without a name are hidden."


def arguments_of(job: Any) -> Section:
    """Return the arguments of the call, one part each; what is named like a secret is hidden, and
    what has no name: that cannot be told."""
    title, text = "Arguments", job.arguments
    if len(text) > MOST_READ:
        return Text(title, [], TOO_LONG.format(len(text)))
    try:
        args, kwargs = arguments.decode_call(text, resolve_models=False)
    except DeserializationError:
        return Text(title, [], UNREADABLE.format(len(text)))
    mask, names = Mask(), parameters_of(job.task_path, len(args))
    laid_out = len(text) <= MOST_LAID_OUT
    positional = zip_longest(names or (), args, fillvalue=None)
    lines = [
        _written(HIDDEN if name is None else mask.shown(value, name), laid_out)
        for name, value in positional
    ]
    lines += [
        f"{name}={_written(mask.shown(value, name), laid_out)}" for name, value in kwargs.items()
    ]
    note = UNKNOWN if args and names is None else ""
    return Text(title, [("", texts.clean(",\n".join(lines) or "(none)"))], note)


def result_of(job: Any) -> Section | None:
    """Return what the task returned, if it has: its name is that of the task's function."""
    title, text = "Result", job.return_value
    if text is None:
        return None
    if len(text) > MOST_READ:
        return Text(title, [], TOO_LONG.format(len(text)))
    try:
        value = arguments.decode(text, resolve_models=False)
    except DeserializationError:
        return Text(title, [], UNREADABLE.format(len(text)))
    shown = Mask().shown(value, str(job.task_path).rpartition(".")[2])
    return Text(title, [("", texts.clean(_written(shown, len(text) <= MOST_LAID_OUT)))])


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


def _written(value: Any, laid_out: bool) -> str:
    return pformat(value, width=100, sort_dicts=False) if laid_out else repr(value)
