"""Tasks of a sharded backend as tasks of its shards."""

from __future__ import annotations

from ..compat import Task
from ..tasks.copies import rebuilt
from ..tasks.validation import MOST_VALID


class Variants:
    """Makes each variant once, so that its shard remembers it as valid."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[Task, Task]] = {}

    def of(self, task: Task, alias: str) -> Task:
        """Return ``task`` with the shard as its backend."""
        known = self._known.get((id(task), alias))
        if known is not None and known[0] is task:
            return known[1]
        if len(self._known) >= MOST_VALID:
            self._known.clear()  # Tasks with options of their own may be made for each call.
        variant: Task = rebuilt(task, backend=alias)
        # With the original: its identity is not given to another one meanwhile.
        self._known[id(task), alias] = task, variant
        return variant
