"""Comparing what a job costs now with what it cost when the figures were stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.columns import aligned

TOLERANCE = 1.10
"""A figure may become this many times as large."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One thing that a job costs."""

    key: str
    title: str
    slack: float = 0.0
    """What comes on top of the tolerance: the part that time decides, and not the code."""

    def limit(self, stored: float) -> float:
        """Return the largest value that passes."""
        return stored * TOLERANCE + self.slack


CPU = (
    Figure(key="drain_cpu", title="CPU of workers, x floor"),
    Figure(key="enqueue_cpu", title="CPU to enqueue one by one, x floor"),
    Figure(key="bulk_cpu", title="CPU to enqueue in bulk, x floor"),
)
# How many jobs share a ring, or a batch of a worker, depends on how fast the machine is.
STATEMENTS = (
    Figure(key="statements_enqueue", title="statements to enqueue", slack=0.2),
    Figure(key="statements_run", title="statements of workers", slack=0.02),
    Figure(key="commits_enqueue", title="commits to enqueue", slack=0.2),
    Figure(key="commits_run", title="commits of workers", slack=0.01),
)
ROUND_TRIPS = (
    Figure(key="round_trips_enqueue", title="round trips to enqueue", slack=0.2),
    Figure(key="round_trips_run", title="round trips of workers", slack=0.01),
)

COUNTS = {
    "sqlite": STATEMENTS,
    "postgres": (*STATEMENTS, *ROUND_TRIPS),
}
"""What is the same on every machine, by database."""

FIGURES = {database: (*CPU, *counts) for database, counts in COUNTS.items()}
"""All that is stored, and compared unless only the counts are asked for."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One figure, stored and now."""

    figure: Figure
    stored: float | None
    now: float | None

    @property
    def verdict(self) -> str:
        """Say `ok`, or what is wrong."""
        if self.stored is None:
            return "NOT STORED"
        if self.now is None:
            return "NOT TAKEN"
        return "ok" if self.now <= self.figure.limit(self.stored) else "WORSE"

    @property
    def passes(self) -> bool:
        return self.verdict == "ok"

    def row(self) -> list[str]:
        """Return the cells of a table."""
        limit = None if self.stored is None else self.figure.limit(self.stored)
        return [self.figure.title, *map(_cell, (self.stored, limit, self.now)), self.verdict]


def passes(findings: Sequence[Finding]) -> bool:
    """Say whether nothing has become dearer."""
    return all(finding.passes for finding in findings)


def text(database: str, findings: Sequence[Finding]) -> str:
    """Return a table of the findings."""
    return f"{database}\n{aligned([HEAD, *(finding.row() for finding in findings)])}"


HEAD = ["for each job", "stored", "limit", "now", ""]


def compare(
    figures: Sequence[Figure], stored: Mapping[str, float], now: Mapping[str, float]
) -> Sequence[Finding]:
    """Compare each of the figures; one that is missing on either side does not pass."""
    return [
        Finding(figure=figure, stored=stored.get(figure.key), now=now.get(figure.key))
        for figure in figures
    ]


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
