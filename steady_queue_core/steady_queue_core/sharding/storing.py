"""Stores calls in several shards, each in a transaction of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import connections

from ..compat import TaskResult
from ..encoded_call import EncodedCall
from ..errors import DuplicateTask, PartlyEnqueued
from .members import member
from .options import ShardingOptions
from .results import seen_from


def store(options: ShardingOptions, calls: Sequence[EncodedCall]) -> list[TaskResult]:
    """Store encoded calls shard by shard; return their results in the order of the calls.

    Those of one shard are stored all or none. Raises ``PartlyEnqueued`` if one shard refuses after
    another has stored.
    """
    by_shard: dict[str, list[int]] = {}
    for number, call in enumerate(calls):
        by_shard.setdefault(call.task.backend, []).append(number)
    if len(by_shard) > 1:
        _require_all(options, by_shard, calls)
    results: dict[int, TaskResult] = {}
    # In the order of the aliases, whatever that of the calls: callers with transactions on several
    # databases would wait for each other, and no server could see it.
    for alias, numbers in sorted(by_shard.items()):
        shard = member(options, alias)
        try:
            stored = shard.store([calls[number] for number in numbers])
        except Exception as error:
            if isinstance(error, DuplicateTask) and error.result is not None:
                error.result = seen_from(options.alias, shard, error.result)
            if not results:
                raise
            raise PartlyEnqueued(
                f"Some calls were not enqueued: the shard {alias!r} refused {len(numbers)} of "
                f"{len(calls)} calls: {type(error).__name__}: {error}. The attribute stored has "
                "the results of those that were.",
                stored=results,
            ) from error
        seen = [seen_from(options.alias, shard, each) for each in stored]
        results.update(zip(numbers, seen, strict=True))
    return [results[number] for number in range(len(calls))]


def _require_all(
    options: ShardingOptions, by_shard: Mapping[str, Sequence[int]], calls: Sequence[EncodedCall]
) -> None:
    """Raise what can be known before anything is stored: that a queue of one of the shards is full,
    or that its database is away."""
    for alias in by_shard:
        shard = member(options, alias)
        if shard.stores_jobs:
            connections[shard.database].ensure_connection()
    require_room(options, calls, keep=False)


def require_room(options: ShardingOptions, calls: Sequence[EncodedCall], *, keep: bool) -> None:
    """Take room in the queues of encoded calls, and ``keep`` it. Raises ``QueueFull``."""
    for alias in dict.fromkeys(call.task.backend for call in calls):
        own = [call for call in calls if call.task.backend == alias]
        member(options, alias).require_room(own, keep=keep)
