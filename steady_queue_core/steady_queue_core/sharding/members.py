"""The backends in ``TASKS`` that are the shards of another one."""

from __future__ import annotations

from typing import Any

from ..backend import SteadyQueueBackend
from ..compat import InvalidTaskBackend, task_backends
from ..configuration import ConfigurationError
from ..configuration.errors import suggest
from .options import ShardingOptions


def member(options: ShardingOptions, alias: str) -> SteadyQueueBackend:
    """Return the shard of this alias. Raises ``ConfigurationError`` if it can be none."""
    where = options.where
    if alias == options.alias:
        raise ConfigurationError(f"{where}: {alias!r} cannot be a shard of itself")
    try:
        found: Any = task_backends[alias]
    except (InvalidTaskBackend, KeyError) as error:
        if alias not in known_aliases():
            near = suggest(alias, [each for each in known_aliases() if each != options.alias])
            raise ConfigurationError(
                f"{where}: the shard {alias!r} is not in TASKS; {near}"
            ) from None
        raise ConfigurationError(
            f"{where}: the shard TASKS[{alias!r}] cannot be used: {error}"
        ) from error
    if not isinstance(found, SteadyQueueBackend):
        kind = "sharded itself"
        if not hasattr(found, "shard_beside"):
            kind = f"a {type(found).__module__}.{type(found).__qualname__}"
        raise ConfigurationError(
            f"{where}: the shard TASKS[{alias!r}] is {kind}; give it the BACKEND "
            "'steady_queue_core.backend.SteadyQueueBackend'"
        )
    return found


def storing(alias: str) -> SteadyQueueBackend | None:
    """Return the backend that may have the result of a job; ``None``: there is none."""
    if alias not in known_aliases():
        return None
    try:
        found = task_backends[alias]
    except (InvalidTaskBackend, KeyError):
        return None
    return found if isinstance(found, SteadyQueueBackend) else None


def known_aliases() -> list[str]:
    """Return the aliases in ``TASKS``."""
    return list(task_backends)
