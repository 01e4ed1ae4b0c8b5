"""Cells of what runs while somebody enqueues: the caller gets the error, nothing is stored half,
and the next call is stored. No process of the queue is at work meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..processes.harness import Project
from .app.switch import ERRORS
from .fault import Fault
from .projects import project
from .report import Report

WAYS = ("alone", "in bulk", "in a transaction", "in a batch")


class Call(NamedTuple):
    """A place, and the task of a call that goes there."""

    name: str
    task: str
    #: The error that the caller gets, whatever was raised; empty: the one that was.
    error: str = "InvalidTask"
    #: Whether the call is stored already.
    is_stored: bool = False
    #: Whether the caller gets no error.
    is_quiet: bool = False
    ways: Sequence[str] = WAYS


CALLS = [
    Call("concurrency key", "limited"),
    Call("unique key", "unique"),
    Call("rate key", "rated"),
    Call("fair key", "fair"),
    # A batch is on one shard, with all that is in it.
    Call("shard key", "sharded_by_itself", ways=WAYS[:3]),
    Call("shard function", "sharded", ways=WAYS[:3]),
    Call("middleware before an enqueue", "faulty", error=""),
    Call("middleware after an enqueue", "faulty", error="", is_stored=True),
    Call("sealing of a call", "faulty", error=""),
    Call("receiver of task_enqueued", "faulty", is_stored=True, is_quiet=True),
]


class Caller:
    """A process of the project that enqueues."""

    def __init__(self, project: Project) -> None:
        self.fault, self._client = Fault(project.folder), project.client
        #: How many rows a call adds that goes well.
        self._rows: dict[tuple[str, str], dict[str, int]] = {}

    def cell(self, place: Call, error: str, way: str) -> list[str]:
        """Have an error raised at a place; return what is wrong then."""
        stored = self._rows_of(place.task, way)
        with self.fault.at(place.name, error):
            raised, left = self._enqueue(place.task, way)
            wrong = [] if self.fault.met() else ["nothing was raised there"]
        awaited = _raised(place, error)
        if raised != awaited:
            wrong.append(f"the caller has got {raised or 'no error'}, not {awaited or 'none'}")
        # The caller's own transaction ends well, that of a batch does not.
        is_kept = place.is_stored and not (awaited and way == "in a batch")
        others = self._rows_of("plain", "alone") if way == "in a transaction" else {}
        if left != (kept := stored if is_kept else others):
            wrong.append(f"there are {left} rows more, not {kept}")
        if self._enqueue(place.task, way) != ["", stored]:
            wrong.append("the next call went another way")
        return [f"{place.name} {way}, {error}: {each}" for each in wrong]

    def _rows_of(self, task: str, way: str) -> dict[str, int]:
        if (task, way) not in self._rows:
            _, self._rows[task, way] = self._enqueue(task, way)
        return self._rows[task, way]

    def _enqueue(self, task: str, way: str) -> Any:
        return self._client.call(PATH, name=task, way=way)


PATH = "tests.faults.app.calls.enqueue"


def _raised(place: Call, error: str) -> str:
    if error == "KeyboardInterrupt":  # That is Ctrl-C.
        return error
    return "" if place.is_quiet else place.error or error


def cells(errors: Iterable[str] = tuple(ERRORS)) -> list[tuple[Call, str, str]]:
    """Return each place with each of these errors, in each way."""
    return [(place, error, way) for place in CALLS for error in errors for way in place.ways]


def sweep(
    database: str, chosen: Sequence[tuple[Call, str, str]] | None = None, *, mutant: str = ""
) -> Report:
    """Run these cells."""
    with Report.of(database, "enqueues") as report, project(database, mutant=mutant) as made:
        caller = Caller(made)
        for each in cells() if chosen is None else chosen:
            report.add(caller.cell(*each))
    return report
