"""Which shard enqueues the runs of a recurring task."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..compat import InvalidTask, InvalidTaskBackend, task_backends
from ..dialects.database import Database
from ..schedules.values import RecurringDefinition
from ..tasks.copies import rebuilt
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


@contextmanager
def alone(key: str, backend: str) -> Iterator[None]:
    """Let nobody else add a recurring task of this key to a sharded backend inside the block.

    One shard, which is the same for everybody, has the lock. It lasts as long as a transaction that
    the caller has there.
    """
    try:
        sharded: Any = task_backends[backend]
    except InvalidTaskBackend:
        sharded = None
    if not isinstance(sharded, ShardedBackend):
        yield
        return
    home = sharded.member(routing.shard_of(key, sharded.settings.shards))
    if not home.stores_jobs:
        yield
        return
    database = Database.of(home.database)
    # A text that is no unique key of a job, and as short as one has to be.
    name = f"recurring {hashlib.sha256(key.encode()).hexdigest()}"
    with database.transaction():
        database.unique_keys.lock({name})
        yield
        database.unique_keys.free({name: None})


def _shard_of(definition: RecurringDefinition, backend: ShardedBackend) -> str:
    try:
        key = backend.keys.of_call(definition.configured_task(), definition.args, definition.kwargs)
    except InvalidTask:
        key = definition.key
    return routing.shard_of(key, backend.settings.shards)
