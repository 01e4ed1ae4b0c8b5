"""The results of jobs in shards, as callers of a sharded backend see them."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

from django.db import transaction

from ..compat import TaskResult
from ..tasks.definition import rebuilt
from ..tasks.task_result import SteadyQueueTaskResult
from .result_ids import joined


def seen_from(alias: str, shard: Any, inner: TaskResult) -> TaskResult:
    """Return a result of ``shard`` as one of the sharded backend ``alias``.

    The one of a call that waits for a commit changes with it.
    """
    outer: TaskResult = object.__new__(SteadyQueueTaskResult)
    _take_over(outer, alias, shard.alias, inner)
    if not inner.id and not getattr(inner, "discarded", False):
        # It was registered after the insertion, and so follows it.
        update = partial(_take_over, outer, alias, shard.alias, inner)
        transaction.on_commit(update, using=shard.caller_database)
    return outer


def _take_over(outer: TaskResult, alias: str, shard: str, inner: TaskResult) -> None:
    values = {each.name: getattr(inner, each.name) for each in fields(inner)}
    values |= {
        "id": joined(shard, inner.id),
        "backend": alias,
        "task": rebuilt(inner.task, backend=alias),
    }
    for name, value in values.items():
        object.__setattr__(outer, name, value)
