"""Which queues are fair. The core knows, which is above this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class FairQueues(Protocol):
    """The queues of one database whose jobs take turns by their keys."""

    def weight_of(self, queue_name: str) -> float | None:
        """Return the default weight of keys of a queue; ``None``: the queue is not fair."""


_sources: list[Callable[[str], FairQueues | None]] = []


def use(source: Callable[[str], FairQueues | None]) -> None:
    """Ask ``source`` for the fair queues of a database, by its alias."""
    _sources[:] = [source]


def fair_queues_in(alias: str) -> FairQueues | None:
    """Return the fair queues of a database; ``None``: it has none."""
    return _sources[0](alias) if _sources else None
