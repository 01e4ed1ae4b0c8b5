"""Checks the callbacks of tasks against the tasks that are registered."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from ..arguments.signature import signature_of
from ..compat import InvalidTask, Task
from ..features.callbacks.options import CALLBACKS, ON_FAILURE, ON_SUCCESS, Callback
from .copies import rebuilt
from .metadata import JobMetadata
from .placement import alias_beside
from .registry import known_task, registered_tasks

#: What a callback is called with, in samples: the id of the result; and of a failure, the path of
#: its exception and its message.
_SAMPLES = {ON_SUCCESS: ("1",), ON_FAILURE: ("1", "builtins.ValueError", "message")}
_MEANING = {
    ON_SUCCESS: "the id of the result",
    ON_FAILURE: "the id of the result, the path of the exception and its message",
}


def callback_paths(task: Task) -> dict[str, str]:
    """Return the paths of the callbacks of a task, by option."""
    own: JobMetadata | None = getattr(task, "job_metadata", None)
    if own is None:
        return {}
    found = {option: getattr(own, option) for option in CALLBACKS}
    return {
        option: value if isinstance(value, str) else value[0]
        for option, value in found.items()
        if value is not None
    }


def require_callbacks(task: Task, backend: Any = None) -> None:
    """Raise ``InvalidTask`` for a callback that cannot run.

    Without a ``backend``, as far as that is known yet: a path may name a task that is declared
    later. Callbacks must use the database of ``backend``.
    """
    for option, path in callback_paths(task).items():
        callback = known_task(path)
        if path == task.module_path:
            raise InvalidTask(_endless([path, path]))
        if callback is not None:
            _require_fit(task, option, callback)
            if backend is not None:
                _require_same_database(task, option, callback, backend)
        elif backend is not None:
            raise InvalidTask(_unknown(task, option, path))
    if cycle := _cycle_from([task]):
        raise InvalidTask(_endless(cycle))


def problems_of_callbacks() -> Iterator[str]:
    """Yield what is wrong with the callbacks of all registered tasks."""
    for task in registered_tasks():
        if callback_paths(task):
            try:
                require_callbacks(task, task.get_backend())
            except InvalidTask as error:
                yield str(error)


def resolved(metadata: JobMetadata, backend: Any) -> dict[str, Any]:
    """Return the callbacks of a job of ``backend``, by option: no longer paths alone, and with the
    backend that stores them with its outcome. The tasks are known to exist."""
    changes: dict[str, Any] = {}
    for option in CALLBACKS:
        given = getattr(metadata, option)
        task = known_task(given) if isinstance(given, str) else None
        if task is not None:
            given = tuple(Callback.of(task))
        if isinstance(given, tuple):
            callback = Callback(*given)
            placed = callback._replace(backend=alias_beside(callback.backend, backend))
            changes[option] = tuple(placed)
    return changes


def _require_fit(task: Task, option: str, callback: Task) -> None:
    signature = signature_of(callback.func, callback.takes_context)
    problem = signature.misfit(_SAMPLES[option], {}) if signature is not None else None
    if problem is not None:
        raise InvalidTask(
            f"{task.module_path}: {option} is {callback.module_path}{signature}, which cannot be "
            f"called with {_MEANING[option]}: {problem}"
        )


def _require_same_database(task: Task, option: str, callback: Task, backend: Any) -> None:
    stored: Any = getattr(task.job_metadata, option)  # type: ignore[attr-defined]
    alias = callback.backend if isinstance(stored, str) else Callback(*stored).backend
    own: Any = rebuilt(callback, backend=alias).get_backend()
    if not share_a_database(backend, own):
        raise InvalidTask(
            f"{task.module_path}: {option} is {callback.module_path}, whose backend {alias!r} does "
            f"not store its jobs in the database of {backend.alias!r}: it could not be stored "
            "together with an outcome. Use a backend on the same database."
        )


def share_a_database(one: Any, other: Any) -> bool:
    """Whether a transaction can store jobs of both backends: with those of each shard of ``one``,
    and in any shard of ``other``."""
    if (members := getattr(one, "members", None)) is not None:
        return all(share_a_database(each, other) for each in members)
    if hasattr(other, "shard_beside"):
        return other.shard_beside(one) is not None
    if not getattr(one, "stores_jobs", False) or not getattr(other, "stores_jobs", False):
        # In memory.
        return hasattr(one, "stores_jobs") and hasattr(other, "stores_jobs")
    return bool(one.database == other.database)


def _cycle_from(trail: list[Task], done: set[str] | None = None) -> list[str]:
    """Return the paths of a cycle of callbacks that the last task of ``trail`` leads to."""
    done = set() if done is None else done
    paths = [task.module_path for task in trail]
    for path in callback_paths(trail[-1]).values():
        if path in paths:
            return [*paths[paths.index(path) :], path]
        callback = known_task(path)
        if callback is not None and path not in done:
            if cycle := _cycle_from([*trail, callback], done):
                return cycle
            done.add(path)
    return []


def _endless(cycle: list[str]) -> str:
    return (
        f"The callbacks {' -> '.join(cycle)} would follow each other without end. Let the last one "
        "have no callback; a task that repeats itself has a schedule, or calls context.enqueue()."
    )


def _unknown(task: Task, option: str, path: str) -> str:
    known = [each.module_path for each in registered_tasks()]
    near = get_close_matches(path, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return (
        f"{task.module_path}: {option} is {path!r}, which is no task that is registered in this "
        f"process.{hint} Declare it with @task in the tasks.py of an installed app, or name its "
        "module in STEADY_QUEUE['task_modules']."
    )
