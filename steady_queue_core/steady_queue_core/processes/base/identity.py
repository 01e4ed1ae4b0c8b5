"""Where a registered process is, as its row's metadata say."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from ...models.process import Process
from . import system


class ProcessLocation(NamedTuple):
    """What it takes to look after a process from outside."""

    #: See ``system.identity``.
    host: str | None
    #: See ``system.birth``.
    birth: str | None
    #: The file of its run journal, if it has one.
    journal: Path | None

    @classmethod
    def here(cls, journal: Path | None) -> ProcessLocation:
        """Return those of the calling process."""
        return cls(system.identity(), system.birth(os.getpid()), journal)

    @classmethod
    def of(cls, process: Process) -> ProcessLocation:
        """Return those of a registered process; of a damaged row nothing is known."""
        try:
            known = json.loads(process.metadata)
        except (ValueError, TypeError, RecursionError):
            known = None
        known = known if isinstance(known, dict) else {}
        texts = {name: known.get(name) for name in cls._fields}
        found = {name: text if isinstance(text, str) else None for name, text in texts.items()}
        journal = found["journal"]
        return cls(found["host"], found["birth"], Path(journal) if journal else None)

    def as_metadata(self) -> dict[str, str | None]:
        """Return the form in which they are stored."""
        return {**self._asdict(), "journal": str(self.journal) if self.journal else None}

    def is_dead(self, pid: int) -> bool:
        """Whether it is certain, on this host, that the process with this pid has ended."""
        known = self.host is not None and self.birth is not None and type(pid) is int
        return known and self.host == system.identity() and system.has_ended(pid, self.birth)
