"""The queues that a worker serves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSelector:
    """The queues of a worker: exact names, ``prefix*`` and ``*``, in order of precedence."""

    patterns: tuple[str, ...] = ("*",)
    #: Names and ``prefix*`` that are left out, whatever else matches them.
    excluded: tuple[str, ...] = ()

    @classmethod
    def of(cls, entries: Sequence[str]) -> QueueSelector:
        """Return the selector of a worker's queue list; ``!name`` and ``!prefix*`` exclude, and
        exclude from ``*`` if there are no other entries."""
        excluded = tuple(entry[1:] for entry in entries if entry.startswith("!"))
        patterns = tuple(entry for entry in entries if not entry.startswith("!"))
        return cls(patterns=patterns or ("*",), excluded=excluded)

    @property
    def takes_all(self) -> bool:
        """Whether all queues that are not excluded are served, so that jobs come in the order of
        priority alone."""
        return "*" in self.patterns

    def excludes(self, name: str) -> bool:
        """Whether a queue is left out."""
        return any(
            name == entry or (entry.endswith("*") and name.startswith(entry[:-1]))
            for entry in self.excluded
        )

    def matching(
        self, existing: Callable[[str], Sequence[str]], paused: frozenset[str]
    ) -> list[str]:
        """Return the names of the queues to poll, in order, except paused and excluded ones. Not
        for ``*``.

        ``existing(prefix)`` lists the queues that have ready jobs and start with ``prefix``.
        """
        names: dict[str, None] = {}
        for pattern in self.patterns:
            found = existing(pattern[:-1]) if pattern.endswith("*") else (pattern,)
            names.update(dict.fromkeys(found))
        return [name for name in names if name not in paused and not self.excludes(name)]
