"""Runs the cells of a database: each place with each error."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from contextlib import closing

from ..servers.kinds import KINDS
from . import enqueues, schedules, starts
from .app.switch import ERRORS
from .bench import Bench
from .locks import LOCKS, Lock
from .places import PLACES, Place
from .projects import project
from .report import Report

DATABASES = ("sqlite", *KINDS)
EXECUTORS = ("threads", "processes")

Cells = Sequence[tuple[Place, str]]


def cells(executor: str, errors: Iterable[str] = tuple(ERRORS)) -> Cells:
    """Return each place with each of these errors."""
    there = [place for place in PLACES if place.executor in ("", executor)]
    return [(place, error) for place in there for error in errors]


def some(executor: str, errors: Sequence[str], each: int) -> Cells:
    """Return each place with some of these errors, the same ones each time."""
    chosen = {place: random.Random(f"{place} {executor}").sample(errors, each) for place in PLACES}
    return [(place, error) for place, error in cells(executor, errors) if error in chosen[place]]


def sweep(
    database: str,
    executor: str,
    chosen: Cells | None = None,
    locks: Sequence[Lock] = LOCKS,
    *,
    mutant: str = "",
) -> Report:
    """Run these cells, and look for traces at the end."""
    chosen = cells(executor) if chosen is None else chosen
    places = [place for place, _ in chosen] or PLACES
    with (
        Report.of(database, executor) as report,
        project(database, executor, mutant=mutant) as made,
        closing(Bench(made, executor, places)) as bench,
    ):
        for place, error in chosen:
            report.add(*bench.cell(place, error))
        # SQLite has one lock, of the whole file.
        for lock in locks if database in KINDS else ():
            report.add(*bench.locked_cell(lock))
        report.wrong += bench.traces()
    return report


def sweeps(database: str, executor: str) -> Iterable[Report]:
    """Run all there is for one executor, and with the last one what does not depend on it."""
    yield sweep(database, executor)
    if executor == EXECUTORS[-1]:
        yield starts.sweep(database)
        yield enqueues.sweep(database)
        yield schedules.sweep(database)
