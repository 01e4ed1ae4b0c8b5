"""Which queues share their workers fairly among keys: ``OPTIONS["fair_queues"]``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from ...configuration.errors import describe
from ...configuration.option_fields import option, optional
from ...configuration.per_queue import PerQueue
from ...configuration.queues import objection
from ...configuration.reader import Reader

OPTION = "fair_queues"
#: The weights that keys may have, and the one that they have by default.
LEAST_WEIGHT, LARGEST_WEIGHT, DEFAULT_WEIGHT = 1, 1_000, 1.0


class FairQueues(PerQueue[float | None]):
    """The fair queues, with the weight that their keys have by default."""

    def weight_of(self, queue_name: str) -> float | None:
        """Return the default weight of the keys of a queue; ``None``: it is not fair."""
        return self.of(queue_name)

    @classmethod
    def merged(cls, declared: Iterable[FairQueues]) -> FairQueues | None:
        """Return what several backends declare together; of two that say something of the same
        entry, the first one counts."""
        by_entry: dict[str, float | None] = {}
        for each in declared:
            by_entry = {**each.by_entry, **by_entry}
        return cls(by_entry) if by_entry else None


def is_weight(value: object) -> TypeGuard[float]:
    """Whether a key may have this weight."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return LEAST_WEIGHT <= value <= LARGEST_WEIGHT


def _read(reader: Reader, name: str) -> FairQueues | None:
    given = reader.values[name]
    by_entry = _by_entry(given)
    if by_entry is None:
        expected = (
            "'*', names of queues such as ['mail', 'tenant-*'], or a dict of these and weights"
        )
        reader.wrong(OPTION, expected)
        return None
    problems = [_problem(entry, weight) for entry, weight in by_entry.items()]
    reader.problems += [f"{reader.path(OPTION)}{problem}" for problem in problems if problem]
    if not by_entry or any(problems):
        return None
    weights = {e: None if each is None else float(each) for e, each in by_entry.items()}
    return FairQueues(weights)


def _by_entry(given: object) -> dict[Any, Any] | None:
    """Return the entries with their weights, unchecked; ``None`` if there can be none."""
    if given == "*":
        return {"*": DEFAULT_WEIGHT}
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, list | tuple) and all(isinstance(each, str) for each in given):
        return dict.fromkeys(given, DEFAULT_WEIGHT)
    return None


def _problem(entry: object, weight: object) -> str | None:
    """Return what is wrong with an entry, as the end of a sentence that names the option."""
    if not isinstance(entry, str):
        return f": expected names of queues, got {describe(entry)}"
    if entry.startswith("!"):
        return f": {entry!r} leaves out queues; give them the weight None instead, in a dict"
    if found := objection(entry):
        return f": {entry!r} {found}"
    if weight is None or is_weight(weight):
        return None
    return (
        f"[{entry!r}]: expected a number of at least {LEAST_WEIGHT} and at most {LARGEST_WEIGHT}, "
        f"or None for a queue that is not fair, got {describe(weight)}"
    )


@dataclass(frozen=True, kw_only=True)
class FairQueueOptions:
    """What a backend says."""

    fair_queues: FairQueues | None = option(None, optional(_read))
    """The queues that share their workers fairly among the keys of their jobs; None: none."""
