"""Validates tasks for the backend, beyond Django's own validation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from inspect import iscoroutinefunction
from typing import Any

from ..arguments.signature import signature_of
from ..compat import InvalidTask, Task
from ..configuration import Configuration
from ..configuration.errors import describe
from ..configuration.queues import LONGEST_NAME, name_objection
from ..durations import LONGEST
from ..features.declared import TASK_CHECKS
from ..timezones import to_due_time
from .callbacks import require_callbacks
from .copies import rebuilt
from .metadata import NONE, JobMetadata
from .registry import require_declared

#: The modules of functions that are defined in a script, or in a shell.
_OF_ONE_PROCESS = (
    "__main__", "__mp_main__", "__console__", "builtins", "django.core.management.commands.shell",
)  # fmt: skip

#: Most tasks that a backend remembers as valid.
MOST_VALID = 1_000


class ValidTasks:
    """Remembers the tasks that were found valid: these objects never change."""

    def __init__(self) -> None:
        self._by_id: dict[int, Task] = {}

    def __contains__(self, task: Task) -> bool:
        return self._by_id.get(id(task)) is task

    def __len__(self) -> int:
        return len(self._by_id)

    def add(self, task: Task) -> None:
        """Remember a task."""
        if len(self._by_id) >= MOST_VALID:
            self._by_id.clear()  # Tasks with options of their own may be made for each call.
        self._by_id[id(task)] = task


def _nothing(option: str) -> object:
    return None


def require_valid(task: Task, default: Callable[[str], object] = _nothing) -> None:
    """Raise ``InvalidTask`` for a name, number of attempts, back-off, time or option of a feature
    that is not valid. ``default`` returns an option of its backend."""
    name: object = task.queue_name
    reason = name_objection(name) if isinstance(name, str) else "is not a string"
    if reason:
        raise InvalidTask(f"Queue name {_shown(name)} is not valid: it {reason}.")
    if len(task.module_path) > LONGEST_NAME:
        raise InvalidTask(
            f"Task {_shown(task.module_path)} is not valid: its path has more than "
            f"{LONGEST_NAME} characters."
        )
    attempts = getattr(task, "max_attempts", None)
    if attempts is not None and (type(attempts) is not int or not 1 <= attempts <= 1000):
        raise InvalidTask(f"max_attempts must be a whole number from 1 to 1000, not {attempts!r}.")
    backoff = getattr(task, "backoff", None)
    if backoff is not None and (not callable(backoff) or iscoroutinefunction(backoff)):
        raise InvalidTask(
            "backoff must be a plain function of the exception and the task result, such as "
            f"steady_queue_core.retries.constant(seconds), not {describe(backoff)}."
        )
    _check_due(task)
    own: JobMetadata = getattr(task, "job_metadata", None) or NONE
    for check in TASK_CHECKS:
        check(task, own, default)
    require_callbacks(task)


def require_enqueueable(task: Task, backend: Any) -> None:
    """Raise ``InvalidTask`` for a valid task that ``backend`` cannot enqueue: no worker has it, or
    not what follows it. Once it can, that stays so. Raises ``ConfigurationError``."""
    if backend.stores_jobs:
        require_shared_module(task)
    require_callbacks(task, backend)
    require_declared(task)


def require_shared_module(task: Task) -> None:
    """Raise ``InvalidTask`` for a task of a script or a shell, which workers do not have, unless
    its module is declared in the settings. Raises ``ConfigurationError``."""
    module = task.func.__module__
    if module in _OF_ONE_PROCESS and module not in Configuration.load().task_modules:
        raise InvalidTask(
            f"{task.module_path} cannot be enqueued: {module} is another module in a worker, which "
            "would not find it. Define it in the tasks.py of an installed app. If workers are "
            f"started from the same file, name {module!r} in STEADY_QUEUE['task_modules']."
        )


def require_datetime(task: Task) -> None:
    """Raise ``InvalidTask`` for a time of another type, before Django compares it."""
    if not isinstance(task.run_after, datetime | None):
        raise InvalidTask(
            f"run_after must be a datetime, not of type {type(task.run_after).__name__}."
        )


def _check_due(task: Task) -> None:
    if task.run_after is not None:
        try:
            to_due_time(task.run_after)
        except OverflowError:
            raise InvalidTask(
                f"run_after {task.run_after.isoformat()} is not valid: it lies outside the years "
                "1 to 9999 in some time zone."
            ) from None
    delay = getattr(task, "delay", None)
    if delay is not None and abs(delay) > LONGEST:
        raise InvalidTask(
            f"run_after {describe(delay)} is not valid: it is more than {LONGEST.days} days."
        )


def _shown(name: object) -> str:
    text = repr(name) if isinstance(name, str) else f"of type {type(name).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}...'"


def with_any_context(task: Task) -> Task:
    """Return ``task`` in a form that Django accepts: it insists on a parameter named ``context``.

    Raises ``InvalidTask`` if the function has no parameter for the context.
    """
    if not task.takes_context:
        return task
    signature = signature_of(task.func, True)
    if signature is None or signature.context == "context":
        return task
    if signature.context is None:
        raise InvalidTask(
            "Task takes context but does not have a first argument of 'context'. "
            "It may have any other name."
        )
    plain: Task = rebuilt(task, takes_context=False)
    return plain
