"""The options of one backend: ``TASKS[alias]["OPTIONS"]``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import timedelta
from inspect import iscoroutinefunction
from typing import Any, cast

from django.utils.module_loading import import_string

from .arguments.limits import DEEPEST
from .compat import TaskResult
from .configuration.errors import ConfigurationError, describe
from .configuration.module_settings import module_reader
from .configuration.option_fields import (
    duration_or_zero,
    flag,
    integer,
    option,
    optional,
    reads_of,
)
from .configuration.reader import Reader
from .features import declared
from .middleware import MiddlewareChain
from .payloads.options import PayloadOptions, read_payload
from .retries import Backoff, as_backoff

#: Is told of the last error of a job, and its result.
ErrorReporter = Callable[[BaseException, TaskResult], object]

MOST_ATTEMPTS = 1000
LARGEST_PAYLOAD = 2**30

#: Options that have a module-level setting as their default.
FROM_MODULE = ("preserve_finished_jobs", "clear_finished_jobs_after", "database")


def _read_path(reader: Reader, name: str) -> str | None:
    value = reader.values[name]
    if value is None or (isinstance(value, str) and _is_path(value)):
        return value
    reader.wrong(name, "the dotted path of a function, or None")
    return None


def _is_path(text: str) -> bool:
    return "." in text and all(part.isidentifier() for part in text.split("."))


def _read_paths(reader: Reader, name: str) -> tuple[str, ...]:
    paths = reader.names(name)
    for path in paths:
        if not _is_path(path):
            reader.problems.append(
                f"{reader.path(name)}: {describe(path)} is not a dotted path, such as "
                "'shop.middleware.Timed'"
            )
    return paths


def _read_models(reader: Reader, name: str) -> tuple[str, ...]:
    labels = reader.names(name)
    for label in labels:
        if [part.isidentifier() for part in label.split(".")] != [True, True]:
            reader.problems.append(
                f"{reader.path(name)}: {describe(label)} is not the label of a model, "
                "such as 'shop.Order'"
            )
    return labels


def _read_database(reader: Reader, name: str) -> str | None:
    value = reader.values[name]
    if value is None or (isinstance(value, str) and value):
        return value
    reader.wrong(name, "an alias of DATABASES, or None")
    return None


def _read_backoff(reader: Reader, name: str) -> Backoff | str | float | timedelta | None:
    value = reader.values[name]
    if isinstance(value, str):
        if _is_path(value):
            return value
    else:
        try:
            as_backoff(value)
        except ValueError:
            pass
        else:
            return cast("Backoff | float | timedelta | None", value)
    expected = "None, a number of seconds, a timedelta, a callable or its dotted path"
    reader.wrong(name, expected)
    return None


@dataclass(frozen=True, kw_only=True)
class BackendOptions(declared.BackendOptions):
    """The options of a backend, for the jobs that are enqueued through it."""

    alias: str = "default"
    """The backend's key in ``TASKS``."""
    database: str | None = option(None, _read_database)
    """Alias of the database that holds its jobs; None: the routers decide."""
    max_attempts: int = option(1, integer(1, MOST_ATTEMPTS))
    """Most attempts of a job, unless its task sets its own; 1: no retry."""
    backoff: Backoff | str | float | timedelta | None = option(None, _read_backoff)
    """Delay before a retry, in a form of ``retries.as_backoff``; None: exponential, with jitter."""
    preserve_finished_jobs: bool = option(True, flag)
    """Whether jobs stay in the table after they finish."""
    clear_finished_jobs_after: timedelta | None = option(
        timedelta(days=1), optional(duration_or_zero)
    )
    """How long they stay; None (only as the module-level setting): forever."""
    clear_failed_jobs_after: timedelta | None = option(None, optional(duration_or_zero))
    """How long failed jobs stay; None: until they are retried or discarded."""
    max_payload_bytes: int = option(2**20, integer(1, LARGEST_PAYLOAD))
    """Largest size in bytes of a job's encoded arguments, and of its result."""
    max_payload_depth: int = option(64, integer(1, DEEPEST))
    """Deepest nesting of arguments and results."""
    payload: PayloadOptions | None = option(None, optional(read_payload))
    """Whether arguments and results are compressed, signed or encrypted; None: stored as JSON."""
    argument_models: tuple[str, ...] | None = option(None, optional(_read_models))
    """Labels of models whose instances any parameter accepts; None: instances of any model, unless
    the parameter's annotation restricts them."""
    enqueue_on_commit: bool = option(False, flag)
    """Whether enqueuing waits for the caller's transaction to commit."""
    unknown_task_patience: timedelta = option(timedelta(minutes=10), duration_or_zero)
    """How long a worker leaves a job with an unknown task to other workers."""
    middleware: tuple[str, ...] = option((), _read_paths)
    """Dotted paths of classes around enqueues and executions, the outermost first."""
    error_reporter: str | None = option(None, _read_path)
    """Dotted path of a function that is told of each job that has failed for good."""

    @classmethod
    def parse(cls, alias: str, mapping: object) -> BackendOptions:
        """Read the ``OPTIONS`` of ``TASKS[alias]``; None is an empty dict.

        Raises ConfigurationError for unknown keys and wrong values, all of them at once. A dotted
        path in ``backoff`` is imported later, by ``resolve_backoff``: it may lead to code that
        needs the models.
        """
        defaults = {each.name: each.default for each in fields(cls) if each.name != "alias"}
        defaults |= dict.fromkeys(FROM_MODULE)
        reader = Reader.for_mapping(_where(alias), {} if mapping is None else mapping, defaults)
        modules = module_reader(name for name in FROM_MODULE if not reader.given(name))
        values = {
            name: read(modules if name in modules.values else reader, name)
            for name, read in reads_of(cls).items()
        }
        reader.problems += modules.problems
        reader.finish()
        return cls(alias=alias, **values)

    def resolve_backoff(self) -> Backoff:
        """Return the back-off, importing it where it is a dotted path.

        Raises ConfigurationError that names the setting.
        """
        try:
            return as_backoff(self.backoff)
        except ValueError as error:
            raise ConfigurationError(f"{_where(self.alias)}['backoff']: {error}") from error

    def load_middleware(self) -> MiddlewareChain | None:
        """Import the middleware; ``None`` if there is none.

        Raises ConfigurationError that names the setting.
        """
        try:
            return MiddlewareChain.load(self.middleware)
        except ValueError as error:
            raise ConfigurationError(f"{_where(self.alias)}['middleware']: {error}") from error

    def load_error_reporter(self) -> ErrorReporter | None:
        """Import the function that is told of failures; ``None`` if there is none.

        Raises ConfigurationError that names the setting.
        """
        if self.error_reporter is None:
            return None
        where = f"{_where(self.alias)}['error_reporter']"
        return imported_function(self.error_reporter, where, "an exception and a task result")


def imported_function(path: str, where: str, of: str) -> Callable[..., Any]:
    """Import the function that an option names by its path; ``of`` says what it is called with.

    Raises ConfigurationError that begins with ``where``.
    """
    try:
        found: Any = import_string(path)
    except ImportError as error:
        raise ConfigurationError(f"{where}: {path!r} cannot be imported: {error}") from error
    if not callable(found) or isinstance(found, type) or iscoroutinefunction(found):
        raise ConfigurationError(f"{where}: {path!r} is not a function of {of}")
    return cast("Callable[..., Any]", found)


def _where(alias: str) -> str:
    return f"TASKS[{alias!r}]['OPTIONS']"
