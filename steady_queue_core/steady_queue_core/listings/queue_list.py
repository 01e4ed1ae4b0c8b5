"""The queue lists of workers: which queues they take jobs from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from ..dialects import QueueSelector


class QueueList:
    """The queue list of one worker, prepared for many questions."""

    def __init__(self, entries: Iterable[str]) -> None:
        selector = QueueSelector.of(list(entries))
        self._takes_all = selector.takes_all
        self._names = frozenset(selector.patterns)
        self._prefixes = _prefixes(selector.patterns)
        self._left_out = frozenset(selector.excluded)
        self._left_out_prefixes = _prefixes(selector.excluded)

    def takes(self, queue: str) -> bool:
        """Whether jobs of a queue are taken."""
        if queue in self._left_out or queue.startswith(self._left_out_prefixes):
            return False
        return self._takes_all or queue in self._names or queue.startswith(self._prefixes)


class Serving(Protocol):
    """A process that may serve queues."""

    @property
    def serves_any(self) -> bool: ...

    @property
    def queues(self) -> list[str]: ...


class LiveWorkers:
    """The live workers by their queue lists, of which many have the same."""

    def __init__(self, processes: Iterable[Serving]) -> None:
        lists = Counter(tuple(each.queues) for each in processes if each.serves_any)
        self._lists = [(QueueList(entries), number) for entries, number in lists.items()]

    def of(self, queue: str) -> int:
        """Return how many of them serve a queue."""
        return sum(number for found, number in self._lists if found.takes(queue))


def _prefixes(entries: Iterable[str]) -> tuple[str, ...]:
    return tuple(each[:-1] for each in entries if each.endswith("*"))
