"""Values that an option gives to queues, by name and by pattern."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class PerQueue(Generic[T]):
    """Values of queues: by name, by a prefix such as ``mail*``, and ``*`` for all others. Each
    queue has the value of the entry that says most of its name."""

    def __init__(self, by_entry: Mapping[str, T]) -> None:
        self.by_entry = dict(by_entry)
        self._by_name = {e: value for e, value in by_entry.items() if not e.endswith("*")}
        prefixes = [(e[:-1], value) for e, value in by_entry.items() if e.endswith("*")]
        self._by_prefix = sorted(prefixes, key=lambda each: -len(each[0]))

    def of(self, queue_name: str) -> T | None:
        """Return the value of a queue; ``None`` without an entry for it."""
        if queue_name in self._by_name:
            return self._by_name[queue_name]
        found = (value for prefix, value in self._by_prefix if queue_name.startswith(prefix))
        return next(found, None)

    def unused(self, queue_names: Collection[str]) -> list[str]:
        """Return the entries that say something of none of these queues."""
        prefixes = [f"{prefix}*" for prefix, _ in self._by_prefix]
        return [
            *(name for name in self._by_name if name not in queue_names),
            *(e for e in prefixes if not any(name.startswith(e[:-1]) for name in queue_names)),
        ]
