"""How long queues may become: ``OPTIONS["queue_limits"]``."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .configuration.errors import describe
from .configuration.queues import objection
from .configuration.reader import Reader

OPTION = "queue_limits"
#: The largest limit: a look at a queue reads as many rows of an index.
MOST_JOBS = 1_000_000


class QueueLimits:
    """The longest lengths of queues: by name, by a prefix such as ``mail*``, and ``*`` for all
    others. Each queue has the limit of the entry that says most of its name."""

    def __init__(self, by_entry: Mapping[str, int | None]) -> None:
        self._by_name = {e: limit for e, limit in by_entry.items() if not e.endswith("*")}
        prefixes = [(e[:-1], limit) for e, limit in by_entry.items() if e.endswith("*")]
        self._by_prefix = sorted(prefixes, key=lambda each: -len(each[0]))

    def of(self, queue_name: str) -> int | None:
        """Return the most ready jobs of a queue; ``None``: as many as there are."""
        if queue_name in self._by_name:
            return self._by_name[queue_name]
        found = (limit for prefix, limit in self._by_prefix if queue_name.startswith(prefix))
        return next(found, None)

    def unused(self, queue_names: Collection[str]) -> list[str]:
        """Return the entries that say something of none of these queues."""
        prefixes = [f"{prefix}*" for prefix, _ in self._by_prefix]
        return [
            *(name for name in self._by_name if name not in queue_names),
            *(e for e in prefixes if not any(name.startswith(e[:-1]) for name in queue_names)),
        ]


def read_queue_limits(reader: Reader) -> QueueLimits | None:
    """Read the option; without an entry there is no limit."""
    given = reader.values[OPTION]
    if given is None:
        return None
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
