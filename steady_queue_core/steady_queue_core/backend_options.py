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
from .configuration.reader import Reader
from .features.delivery.options import AT_MOST_ONCE, MODES, MOST_CRASHES
from .features.endings.options import MOST_SNOOZES
from .features.fair.queues import FairQueues, read_fair_queues
from .features.queue_limits.options import QueueLimits, read_queue_limits
from .middleware import MiddlewareChain
from .payloads.options import PayloadOptions, read_payload
from .retries import Backoff, as_backoff

#: Is told of the last error of a job, and its result.
ErrorReporter = Callable[[BaseException, TaskResult], object]

MOST_ATTEMPTS = 1000
LARGEST_PAYLOAD = 2**30

#: Options that have a module-level setting as their default.
FROM_MODULE = ("preserve_finished_jobs", "clear_finished_jobs_after", "database")


@dataclass(frozen=True, kw_only=True)
class BackendOptions:
    """The options of a backend, for the jobs that are enqueued through it."""

    alias: str = "default"
    """The backend's key in ``TASKS``."""
    database: str | None = None
    """Alias of the database that holds its jobs; None: the routers decide."""
    max_attempts: int = 1
    """Most attempts of a job, unless its task sets its own; 1: no retry."""
    max_snoozes: int = 1_000
    """How often a job may snooze, unless its task says so itself."""
    delivery: str | None = None
    """What becomes of interrupted jobs, unless their task says so itself; see ``delivery``."""
    max_crashes: int = 5
    """How many processes a job that is delivered at least once may take along, unless its task
    says so itself."""
    backoff: Backoff | str | float | timedelta | None = None
    """Delay before a retry, in a form of ``retries.as_backoff``; None: exponential, with jitter."""
    preserve_finished_jobs: bool = True
    """Whether jobs stay in the table after they finish."""
    clear_finished_jobs_after: timedelta | None = timedelta(days=1)
    """How long they stay; None (only as the module-level setting): forever."""
    clear_failed_jobs_after: timedelta | None = None
    """How long failed jobs stay; None: until they are retried or discarded."""
    expires: timedelta | None = None
    """Time from the enqueue after which a job no longer starts, unless its task or call says so
    itself; None: a job does not expire."""
    timeout: timedelta | None = None
    """How long an attempt may take, unless its task or call says so itself; None: any time."""
    timeout_grace: timedelta = timedelta(seconds=10)
    """How much longer a task may run that does not end when its time is over, unless its task or
    call says so itself; then its worker is replaced."""
    max_payload_bytes: int = 2**20
    """Largest size in bytes of a job's encoded arguments, and of its result."""
    max_payload_depth: int = 64
    """Deepest nesting of arguments and results."""
    payload: PayloadOptions | None = None
    """Whether arguments and results are compressed, signed or encrypted; None: stored as JSON."""
    argument_models: tuple[str, ...] | None = None
    """Labels of models whose instances any parameter accepts; None: instances of any model, unless
    the parameter's annotation restricts them."""
    enqueue_on_commit: bool = False
    """Whether enqueuing waits for the caller's transaction to commit."""
    unknown_task_patience: timedelta = timedelta(minutes=10)
    """How long a worker leaves a job with an unknown task to other workers."""
    queue_limits: QueueLimits | None = None
    """How many ready jobs queues may have, before nothing more is enqueued; None: any number."""
    fair_queues: FairQueues | None = None
    """The queues that share their workers fairly among the keys of their jobs; None: none."""
    middleware: tuple[str, ...] = ()
    """Dotted paths of classes around enqueues and executions, the outermost first."""
    error_reporter: str | None = None
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
        options = cls(
            alias=alias,
            database=_read_database(reader if reader.given("database") else modules),
            max_attempts=reader.integer("max_attempts", least=1, most=MOST_ATTEMPTS),
            max_snoozes=reader.integer("max_snoozes", least=0, most=MOST_SNOOZES),
            delivery=_read_delivery(reader),
            max_crashes=reader.integer("max_crashes", least=1, most=MOST_CRASHES),
            backoff=_read_backoff(reader),
            preserve_finished_jobs=_read_preserve(modules, reader),
            clear_finished_jobs_after=_read_clear_after(modules, reader),
            clear_failed_jobs_after=(
                reader.duration("clear_failed_jobs_after", zero=True)
                if reader.given("clear_failed_jobs_after")
                else None
            ),
            expires=reader.duration("expires") if reader.given("expires") else None,
            timeout=reader.duration("timeout") if reader.given("timeout") else None,
            timeout_grace=reader.duration("timeout_grace", zero=True),
            max_payload_bytes=reader.integer("max_payload_bytes", least=1, most=LARGEST_PAYLOAD),
            max_payload_depth=reader.integer("max_payload_depth", least=1, most=DEEPEST),
            payload=read_payload(reader),
            argument_models=_read_models(reader),
            enqueue_on_commit=reader.flag("enqueue_on_commit"),
            unknown_task_patience=reader.duration("unknown_task_patience", zero=True),
            queue_limits=read_queue_limits(reader),
            fair_queues=read_fair_queues(reader),
            middleware=_read_paths(reader, "middleware"),
            error_reporter=_read_path(reader, "error_reporter"),
        )
        reader.problems += modules.problems
        reader.finish()
        return options

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


def _read_path(reader: Reader, name: str) -> str | None:
    """Read a dotted path; None stays None."""
    value = reader.values[name]
    if value is None or (isinstance(value, str) and _is_path(value)):
        return value
    reader.wrong(name, "the dotted path of a function, or None")
    return None


def _is_path(text: str) -> bool:
    return "." in text and all(part.isidentifier() for part in text.split("."))


def _read_paths(reader: Reader, name: str) -> tuple[str, ...]:
    """Read a list of dotted paths."""
    paths = reader.names(name)
    for path in paths:
        if not _is_path(path):
            reader.problems.append(
                f"{reader.path(name)}: {describe(path)} is not a dotted path, such as "
                "'shop.middleware.Timed'"
            )
    return paths


def _read_models(reader: Reader) -> tuple[str, ...] | None:
    if not reader.given("argument_models"):
        return None
    labels = reader.names("argument_models")
    for label in labels:
        if [part.isidentifier() for part in label.split(".")] != [True, True]:
            reader.problems.append(
                f"{reader.path('argument_models')}: {describe(label)} is not the label of a model, "
                "such as 'shop.Order'"
            )
    return labels


def _where(alias: str) -> str:
    return f"TASKS[{alias!r}]['OPTIONS']"


def _read_database(reader: Reader) -> str | None:
    value = reader.values["database"]
    if value is None or (isinstance(value, str) and value):
        return value
    reader.wrong("database", "an alias of DATABASES, or None")
    return None


def _read_backoff(reader: Reader) -> Backoff | str | float | timedelta | None:
    value = reader.values["backoff"]
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
    reader.wrong("backoff", "None, a number of seconds, a timedelta, a callable or its dotted path")
    return None


def _read_delivery(reader: Reader) -> str | None:
    if not reader.given("delivery"):
        return None
    mode = reader.choice("delivery", MODES)
    if mode == AT_MOST_ONCE and reader.values["max_attempts"] != 1:
        reader.problems.append(
            f"{reader.path('max_attempts')}: must be 1, or left out, with the delivery "
            f"{AT_MOST_ONCE!r}: a second attempt is a second start"
        )
    return mode


def _read_preserve(modules: Reader, reader: Reader) -> bool:
    name = "preserve_finished_jobs"
    return (reader if reader.given(name) else modules).flag(name)


def _read_clear_after(modules: Reader, reader: Reader) -> timedelta | None:
    name = "clear_finished_jobs_after"
    if reader.given(name):
        return reader.duration(name, zero=True)
    return modules.duration(name, zero=True) if modules.given(name) else None
