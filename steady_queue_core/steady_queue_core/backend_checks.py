"""System checks of the ``OPTIONS`` of a backend."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import fields

from django.core.checks import CheckMessage, Error
from django.db import connections

from .backend_options import BackendOptions
from .configuration import ConfigurationError
from .configuration.per_queue import PerQueue


def missing_app(alias: str, app: str) -> CheckMessage:
    """Return the error of a backend whose app is not installed: without it no other check runs."""
    return Error(
        f"TASKS[{alias!r}] is a backend of Steady Queue, whose app is not installed.",
        hint=f"Add {app!r} to INSTALLED_APPS, and run: manage.py migrate",
        id="steady_queue.E010",
    )


def wrong_options(
    alias: str, read: Callable[[], BackendOptions], queues: Collection[str]
) -> list[CheckMessage]:
    """Return the errors of the options that ``read`` parses, of a backend with these ``queues``."""
    try:
        options = read()
        options.resolve_backoff()
        options.load_middleware()
        options.load_error_reporter()
    except (ConfigurationError, ValueError) as error:
        return [_error(problem) for problem in getattr(error, "problems", [str(error)])]
    if options.database and options.database not in connections:
        return [
            _error(
                f"TASKS[{alias!r}]['OPTIONS']['database'] is {options.database!r}, which "
                f"is not in DATABASES ({', '.join(sorted(connections))})."
            )
        ]
    return list(_unknown_queues(options, queues)) if queues else []


def _unknown_queues(options: BackendOptions, queues: Collection[str]) -> Iterator[CheckMessage]:
    """Yield the errors of options for queues that the backend has not."""
    values = {each.name: getattr(options, each.name) for each in fields(options)}
    for option, found in values.items():
        for entry in found.unused(queues) if isinstance(found, PerQueue) else ():
            yield _error(
                f"TASKS[{options.alias!r}]['OPTIONS'][{option!r}] names {entry!r}, but the "
                f"QUEUES of this backend are {', '.join(map(repr, sorted(queues)))}.",
                hint="Check the spelling, or add the queue to QUEUES.",
            )


def _error(message: str, hint: str | None = None) -> CheckMessage:
    return Error(message, hint=hint, id="steady_queue.E004")
