"""Runs the cells of a database: each place with each error."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..servers.kinds import KINDS
from .app.switch import ERRORS
from .bench import Bench
from .locks import LOCKS, Lock
from .places import PLACES, Place

DATABASES = ("sqlite", *KINDS)
EXECUTORS = ("threads", "processes")


@dataclass
class Report:
    """What came of the cells of one database."""

    database: str
    executor: str
    cells: int = 0
    seconds: float = 0.0
    #: The longest time that other jobs took beside a faulty one.
    longest: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def add(self, wrong: list[str], took: float) -> None:
        """Add a cell."""
        self.wrong += wrong
        self.longest = max(self.longest, took)
        self.cells += 1

    def __str__(self) -> str:
        return (
            f"{self.database:9} {self.executor:9} {self.cells:5} cells in {self.seconds:5.1f} s, "
            f"others within {self.longest:.2f} s, {len(self.wrong)} wrong"
        )


@contextmanager
def bench(database: str, executor: str) -> Iterator[Bench]:
    """Set up a project on a database; ``"sqlite"``, or the alias of a server that is named by the
    environment."""
    server = None if database == "sqlite" else KINDS[database].given()
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Bench(Path(folder), server, executor)) as made,
    ):
        yield made


def sweep(
    database: str,
    executor: str,
    places: Sequence[Place] = PLACES,
    errors: Sequence[str] = tuple(ERRORS),
    locks: Sequence[Lock] = LOCKS,
) -> Report:
    """Run these cells, and look for traces at the end."""
    report, began = Report(database, executor), time.monotonic()
    with bench(database, executor) as made:
        for place in places:
            for error in errors:
                report.add(*made.cell(place, error))
        # SQLite has one lock, of the whole file.
        for lock in locks if database in KINDS else ():
            report.add(*made.locked_cell(lock))
        report.wrong += made.traces()
    report.seconds = time.monotonic() - began
    return report
