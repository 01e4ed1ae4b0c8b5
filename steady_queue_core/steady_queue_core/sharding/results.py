"""The results of jobs in shards, as callers of a sharded backend see them, and their ids:
``"<alias of the shard>:<id of the job>"``."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

from django.db import transaction

from ..compat import TaskResult
from ..tasks.copies import rebuilt
from ..tasks.task_result import SteadyQueueTaskResult, evolve

SEPARATOR = ":"


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
    evolve(outer, **values)


def joined(shard: str, job_id: str) -> str:
    """Return the id of the result of a job; of one that is not stored, ``""``."""
    return f"{shard}{SEPARATOR}{job_id}" if job_id else ""


def parts(result_id: object) -> tuple[str, str] | None:
    """Return the shard and the id of the job that a text names; ``None``: it names none."""
    if not isinstance(result_id, str):
        return None
    shard, separator, job_id = result_id.rpartition(SEPARATOR)
    return (shard, job_id) if separator and shard and job_id else None
