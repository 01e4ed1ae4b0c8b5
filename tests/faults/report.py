"""What came of the cells of one database."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self


@dataclass
class Report:
    """What came of some cells."""

    database: str
    #: What kind of cells they are.
    kind: str
    cells: int = 0
    seconds: float = 0.0
    #: The longest time that other jobs took beside a faulty one.
    longest: float = 0.0
    wrong: list[str] = field(default_factory=list)

    @classmethod
    @contextmanager
    def of(cls, database: str, kind: str) -> Iterator[Self]:
        """Give a report to be filled in, and note how long that takes."""
        report, began = cls(database, kind), time.monotonic()
        yield report
        report.seconds = time.monotonic() - began

    def add(self, wrong: Sequence[str], took: float = 0.0, cells: int = 1) -> None:
        """Add a cell, or several ones that were tried at once."""
        self.wrong += wrong
        self.longest = max(self.longest, took)
        self.cells += cells

    def __str__(self) -> str:
        others = f"others within {self.longest:.2f} s, " if self.longest else ""
        return (
            f"{self.database:9} {self.kind:9} {self.cells:5} cells in {self.seconds:5.1f} s, "
            f"{others}{len(self.wrong)} wrong"
        )
