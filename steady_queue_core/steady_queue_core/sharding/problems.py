"""What is wrong with the settings of a sharded backend."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from django.core.exceptions import ImproperlyConfigured

from ..backend import SteadyQueueBackend
from ..configuration import ConfigurationError
from .members import member
from .options import ShardingOptions


def problems_of(options: ShardingOptions, queues: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each; ``queues`` are its ``QUEUES``."""
    try:
        options.load_function()
    except ConfigurationError as error:
        yield from error.problems
    members: list[SteadyQueueBackend] = []
    for alias in options.members:
        try:
            members.append(member(options, alias))
        except ConfigurationError as error:
            yield from error.problems
    yield from _shared_databases(options, members)
    yield from _refused_queues(options, queues, members)


def _shared_databases(options: ShardingOptions, members: list[SteadyQueueBackend]) -> Iterator[str]:
    first: dict[str, str] = {}
    for shard in members:
        if not shard.stores_jobs:
            continue  # In tests: each has a memory of its own.
        try:
            using = shard.database
        except ImproperlyConfigured:
            continue  # Its own check reports it.
        if using in first:
            yield (
                f"{options.where}: the shards {first[using]!r} and {shard.alias!r} store their "
                f"jobs in the same database, {using!r}; give each an OPTIONS['database'] of its own"
            )
        first.setdefault(using, shard.alias)


def _refused_queues(
    options: ShardingOptions, queues: Collection[str], members: list[SteadyQueueBackend]
) -> Iterator[str]:
    for shard in members:
        refused = sorted(set(queues) - shard.queues) if shard.queues else []
        if refused:
            names = ", ".join(map(repr, refused))
            yield (
                f"TASKS[{options.alias!r}]['QUEUES'] has {names}, which the QUEUES of the shard "
                f"TASKS[{shard.alias!r}] do not have; give both the same"
            )
