"""What a job keeps of the callbacks of its task: which task each of them is, and how it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypedDict

from ...compat import AnyTask, InvalidTask, Task
from ...configuration.queues import LONGEST_NAME, name_objection
from ..fact import fact
from ..option import Option

#: The options of ``@task`` and ``using()`` that name a callback.
ON_SUCCESS, ON_FAILURE = "on_success", "on_failure"
CALLBACKS = (ON_SUCCESS, ON_FAILURE)
#: The largest priority, and, negated, the smallest one.
LARGEST_PRIORITY = 100


class Callback(NamedTuple):
    """A task that is enqueued with the outcome of a job. A job keeps all of it, so that who stores
    the outcome need not know the task."""

    path: str
    queue_name: str
    priority: int
    backend: str

    @classmethod
    def of(cls, task: Task) -> Callback:
        """Return the callback that runs ``task`` with its own options."""
        return cls(task.module_path, task.queue_name, task.priority, task.backend)


def is_callback(value: object) -> bool:
    """Whether a value from a row is a callback whose job can be stored."""
    if not isinstance(value, tuple) or len(value) != len(Callback._fields):
        return False
    path, queue_name, priority, backend = value
    return (
        _is_name(path)
        and _is_name(backend)
        and isinstance(queue_name, str)
        and name_objection(queue_name) is None
        and type(priority) is int
        and abs(priority) <= LARGEST_PRIORITY
    )


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable()


def checked_callback(option: str, value: object, where: str) -> str | tuple[Any, ...]:
    """Return the form in which a task keeps a callback: that of a job, or the path of a task that
    may be declared later. Raises ``InvalidTask`` that names ``where``."""
    if isinstance(value, str):
        if len(value) > LONGEST_NAME or not _is_dotted(value):
            raise InvalidTask(
                f"{where}: {option} must be a task or its dotted path, such as "
                f"'shop.tasks.report', not {value!r:.100}."
            )
        return value
    if not isinstance(value, Task):
        raise InvalidTask(
            f"{where}: {option} must be a task or its dotted path, not of type "
            f"{type(value).__name__}. Put @task on the function."
        )
    if value.run_after is not None or getattr(value, "delay", None) is not None:
        raise InvalidTask(
            f"{where}: {option} is {value.module_path} with run_after: a callback is due at once."
        )
    return tuple(Callback.of(value))


def require_declared_options(
    options: Mapping[str, Any], declared: Callable[[str], Task | None], where: str
) -> None:
    """Raise ``InvalidTask`` for a callback among ``options`` that has others than those of its
    declaration, which ``declared`` returns by its path."""
    for option in CALLBACKS:
        value = options.get(option)
        if isinstance(value, Task) and _stored(value) != _stored(declared(value.module_path)):
            raise InvalidTask(
                f"{where}: {option} is {value.module_path} with options that a callback cannot "
                "have of its own: using() may change its queue_name, priority and backend. Set the "
                "others where the task is declared."
            )


def _is_dotted(path: str) -> bool:
    parts = path.split(".")
    return len(parts) > 1 and all(part.isidentifier() for part in parts)


def _stored(task: Task | None) -> object:
    return getattr(task, "job_metadata", None), getattr(task, "fair_key", None)


class CallbackOptions(TypedDict, total=False):
    """What ``@task`` and ``using()`` take."""

    on_success: AnyTask | str | None
    on_failure: AnyTask | str | None


@dataclass(frozen=True, kw_only=True)
class CallbackFacts:
    """What a job keeps: what is enqueued once it has succeeded, and once it has failed for good,
    the values of a ``Callback``; of a task, also a path alone."""

    __slots__ = ()

    on_success: str | tuple[Any, ...] | None = fact(is_valid=is_callback)
    on_failure: str | tuple[Any, ...] | None = fact(is_valid=is_callback)


OPTIONS = tuple(
    Option(name, check, check) for name in CALLBACKS for check in [partial(checked_callback, name)]
)
