"""Which shard enqueues the runs of a recurring task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..compat import InvalidTask, InvalidTaskBackend, task_backends
from ..schedules.definition import RecurringDefinition
from ..tasks.definition import rebuilt
from . import routing
from .backend import ShardedBackend


def placed(definition: RecurringDefinition, shard: str | None = None) -> RecurringDefinition:
    """Return a recurring task with the backend that stores its jobs: of a sharded one the ``shard``
    if that is given, else that of its arguments or, if they have no key, that of its own key.

    Raises ``ConfigurationError``.
    """
    try:
        backend: Any = task_backends[definition.task.backend]
    except InvalidTaskBackend:
        return definition
    if not isinstance(backend, ShardedBackend):
        return definition
    task: Any = definition.task
    return replace(definition, task=rebuilt(task, backend=shard or _shard_of(definition, backend)))


def _shard_of(definition: RecurringDefinition, backend: ShardedBackend) -> str:
    try:
        key = backend.keys.of_call(definition.configured_task(), definition.args, definition.kwargs)
    except InvalidTask:
        key = definition.key
    return routing.shard_of(key, backend.settings.shards)
