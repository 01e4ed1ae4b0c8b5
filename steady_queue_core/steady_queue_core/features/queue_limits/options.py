"""How long queues may become: ``OPTIONS["queue_limits"]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...configuration.errors import describe
from ...configuration.option_fields import option, optional
from ...configuration.per_queue import PerQueue
from ...configuration.queues import objection
from ...configuration.reader import Reader

OPTION = "queue_limits"
#: The largest limit: a look at a queue reads as many rows of an index.
MOST_JOBS = 1_000_000


class QueueLimits(PerQueue[int | None]):
    """The most ready jobs of queues; ``None``: as many as there are."""


def _read(reader: Reader, name: str) -> QueueLimits | None:
    given = reader.values[name]
    if not isinstance(given, Mapping):
        reader.wrong(OPTION, "a dict of queues and numbers, such as {'mail': 100_000}")
        return None
    problems = [_problem(entry, limit) for entry, limit in given.items()]
    reader.problems += [f"{reader.path(OPTION)}{problem}" for problem in problems if problem]
    return QueueLimits(given) if given and not any(problems) else None


def _problem(entry: object, limit: object) -> str | None:
    """Return what is wrong with an entry, as the end of a sentence that names the option."""
    if not isinstance(entry, str):
        return f": expected names of queues, got {describe(entry)}"
    if entry.startswith("!"):
        return f": {entry!r} leaves out queues; give them the limit None instead"
    if found := objection(entry):
        return f": {entry!r} {found}"
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_JOBS:
        return (
            f"[{entry!r}]: expected an integer of at least 1 and at most {MOST_JOBS}, or None, "
            f"got {describe(limit)}"
        )
    return None


@dataclass(frozen=True, kw_only=True)
class QueueLimitOptions:
    """What a backend says."""

    queue_limits: QueueLimits | None = option(None, optional(_read))
    """How many ready jobs queues may have, before nothing more is enqueued; None: any number."""
