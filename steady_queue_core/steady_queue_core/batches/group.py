"""Groups: calls that run at once, with one result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..bulk import Call
from ..compat import Task
from ..dialects.membership import GROUP
from .chain import Chain
from .graph import Graph, Place, grouped
from .steps import Steps, collecting


class Group(Steps):
    """Steps that run at once, as far as there are workers."""

    kind = GROUP

    def graph_at(self, place: Place, where: str) -> Graph:
        return grouped(self.steps, place, where, self.options)

    def __or__(self, after: Any) -> Chain:
        """Return a chain of the group and a call, which is given the list of its return values in
        order: as its first argument, unless it says with ``Previous()`` where that goes."""
        return Chain(self, collecting(after))


def group(*steps: Any, **options: Any) -> Group:
    """Return a group of calls, chains and groups, to be enqueued.

    Takes ``description``, ``metadata``, ``on_success``, ``on_failure`` and ``on_finish``, as
    ``Batch`` does. Raises ``ValueError`` and ``TypeError``.
    """
    return Group(*steps, **options)


def mapped(task: Task, items: Iterable[Any], args: Any, kwargs: Any) -> Group:
    """Return the group of calls of ``task`` with each of these items as the first argument."""
    return Group(*(Call(task, (item, *args), kwargs) for item in items))
