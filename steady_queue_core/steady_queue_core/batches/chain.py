"""Chains: calls that run one after the other."""

from __future__ import annotations

from typing import Any

from ..dialects.membership import CHAIN
from .graph import Graph, Place, chained
from .steps import Steps, collecting


class Chain(Steps):
    """Steps of which each runs after the one before has succeeded. If one fails, those after it are
    cancelled."""

    kind = CHAIN

    def graph_at(self, place: Place, where: str) -> Graph:
        return chained(self.steps, place, where, self.options)

    def __or__(self, after: Any) -> Chain:
        """Return the chain with a call at its end that is given the last result."""
        return _with(self, (*self.steps, collecting(after)))


def chain(*steps: Any, **options: Any) -> Chain:
    """Return a chain of calls, groups and chains, to be enqueued.

    Takes ``description``, ``metadata``, ``on_success``, ``on_failure`` and ``on_finish``, as
    ``Batch`` does. Raises ``ValueError`` and ``TypeError``.
    """
    return Chain(*steps, **options)


def _with(known: Chain, steps: tuple[Any, ...]) -> Chain:
    longer = Chain(*steps)
    longer.options = known.options
    return longer
