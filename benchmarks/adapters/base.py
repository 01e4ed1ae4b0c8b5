"""The interface between the harness and a competitor.

An adapter has two halves in one file. The first describes the competitor to the harness, which runs
outside of its environment: nothing there may import Django. The second runs inside, in the
throw-away project with Django set up: there imports belong into the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.databases import Database
from benchmarks.options import Options


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """The features of a competitor: the table shows `n/a` for a missing one."""

    bulk: bool = False
    """It has an interface of its own that enqueues many jobs at once."""
    coroutine: bool = False
    """It runs `async def` tasks."""
    results: bool = False
    """Return values are stored."""
    queues: bool = False
    """Its workers take jobs from the queues in the settings' `QUEUES`."""
    threads: bool = False
    """A worker process has as many threads as the settings' `THREADS` says."""
    limits: bool = False
    """It limits how many jobs of a key run at once."""


class Adapter(Protocol):
    """One competitor."""

    @property
    def name(self) -> str:
        """Its name for `--only` and in the column's head."""

    @property
    def databases(self) -> Sequence[str]:
        """The databases it runs on."""

    @property
    def elsewhere(self) -> str:
        """Why it runs on no others."""

    @property
    def capabilities(self) -> Capabilities:
        """Its features."""

    @property
    def note(self) -> str:
        """A one-line note for readers of the table."""

    # Outside of its environment.

    def requirements(self, database: str) -> Sequence[str]:
        """Return the requirements besides a driver; `./` is the root of the repository."""

    def distributions(self, database: str) -> Sequence[str]:
        """Return the distributions whose installed versions the report names."""

    def settings(self, database: Database, options: Options) -> str:
        """Return lines to add to the settings module of the throw-away project."""

    def files(self, options: Options) -> dict[str, str]:
        """Return the files of the project's app `jobs`: path and text.

        Among them `jobs/tasks.py` with `noop`, `stamp` and, where it can, the other tasks of
        `drains`. Each takes the number of its job, and hands it on to `task_probe`.
        """

    def worker_commands(self, python: str, database: Database, options: Options) -> list[list[str]]:
        """Return the commands that together start the worker processes."""

    # Inside of it.

    def prepare(self) -> None:
        """Make the tables in an empty database."""

    def fill(self, task: str, numbers: range) -> None:
        """Enqueue a job with each number by the fastest means there is; not measured."""

    def enqueuer(self, task: str) -> Callable[[int], object]:
        """Return what enqueues one job with a number, in a transaction of its own."""

    def enqueue_many(self, task: str, numbers: range) -> None:
        """Enqueue a job with each number, with one call."""

    def unfinished(self, enqueued: int) -> int:
        """Return how many of the ``enqueued`` jobs have no stored outcome yet."""
