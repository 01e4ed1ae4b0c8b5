"""Where a registered process is, as its row's metadata say."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from ...models.process import Process
from . import system as host


class Whereabouts(NamedTuple):
    """What it takes to look after a process from outside."""

    #: See ``host.identity``.
    host: str | None
    #: See ``host.birth``.
    birth: str | None
    #: Its file of start marks, if it has one.
    marks: Path | None

    @classmethod
    def here(cls, marks: Path | None) -> Whereabouts:
        """Return those of the calling process."""
        return cls(host.identity(), host.birth(os.getpid()), marks)

    @classmethod
    def of(cls, process: Process) -> Whereabouts:
        """Return those of a registered process; of a damaged row nothing is known."""
        try:
            known = json.loads(process.metadata)
        except (ValueError, TypeError, RecursionError):
            known = None
        known = known if isinstance(known, dict) else {}
        texts = {name: known.get(name) for name in cls._fields}
        found = {name: text if isinstance(text, str) else None for name, text in texts.items()}
        marks = found["marks"]
        return cls(found["host"], found["birth"], Path(marks) if marks else None)

    def as_metadata(self) -> dict[str, str | None]:
        """Return the form in which they are stored."""
        return {**self._asdict(), "marks": str(self.marks) if self.marks else None}

    def is_dead(self, pid: int) -> bool:
        """Whether it is certain, on this host, that the process with this pid has ended."""
        known = self.host is not None and self.birth is not None and type(pid) is int
        return known and self.host == host.identity() and host.has_ended(pid, self.birth)
