"""Counts inside the throw-away project, where the queue runs in threads of the same process."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from benchmarks.adapters import Adapter
from benchmarks.calls.tracer import Tracer, is_own

KINDS = ("noop", "described", "optioned")
"""Tasks: a plain one, one with ``metadata=`` alone, and one with five options."""
FEW, MANY = 100, 600
"""Jobs in two runs: the difference is the cost of the additional jobs, without fixed costs."""
PATIENCE = 60
"""Seconds for each of them."""
ROUNDS = 3
"""Of each run; the least counts: how many jobs share a claim depends on the machine."""

Figures = dict[str, float]


def measure(adapter: Adapter) -> Figures:
    """Return calls, functions, files and hops of each kind of job, enqueued and run."""
    figures: Figures = {}
    for kind in KINDS:
        figures |= {f"{kind}_{name}": value for name, value in _enqueued(adapter, kind).items()}
    with _working(adapter):
        pass
    for kind in KINDS:
        figures |= {f"{kind}_{name}": value for name, value in _run(adapter, kind).items()}
    return figures


def _enqueued(adapter: Adapter, kind: str) -> Figures:
    enqueue = adapter.enqueuer(kind)
    for number in range(FEW):
        enqueue(number)
    with Tracer() as tracer:
        for number in range(FEW, MANY):
            enqueue(number)
    own = threading.get_ident()
    calls = tracer.calls[own]
    return {
        "enqueue_calls": calls.total() / (MANY - FEW),
        "enqueue_functions": len(_own(calls)),
        "enqueue_files": _files(_own(calls)),
        "enqueue_hops": len(tracer.paths[own]["statement"]),
    }


def _run(adapter: Adapter, kind: str) -> Figures:
    """Run a few jobs, then many; count what that takes in the threads of the worker."""
    few, many = (min(_runs(adapter, kind, jobs), key=_total) for jobs in (FEW, MANY))
    grown = {name: _grown(few.calls_of(name), many.calls_of(name)) for name in ROLES}
    calls = {f"run_calls_{name}": each.total() / (MANY - FEW) for name, each in grown.items()}
    # What is called for a batch of jobs is not for each of them.
    used = _own(key for each in grown.values() for key, count in each.items() if count >= MANY / 2)
    return {
        "run_calls": sum(calls.values()),
        **calls,
        "run_functions": len(used),
        "run_files": _files(used),
        "run_hops": sum(map(len, few.paths())),
    }


ROLES = ("main", "task")
"""The threads of a worker: the one that asks the database, and those of the tasks."""


class Run:
    """What was counted while jobs ran, by the role of the thread."""

    def __init__(self, tracer: Tracer, roles: dict[int, str]) -> None:
        self._tracer, self._roles = tracer, roles

    def calls_of(self, role: str) -> Counter[object]:
        """Return the calls of all threads of a role."""
        found: Counter[object] = Counter()
        for thread, calls in self._tracer.calls.items():
            if self._roles.get(thread) == role:
                found.update(calls)
        return found

    def paths(self) -> Iterable[list[CodeType]]:
        """Yield the own functions on the deepest ways: to a statement of the main thread, which
        claims and settles, and to the function of a task."""
        for role, landmark in (("main", "statement"), ("task", "")):
            found = [
                list(path)
                for thread, paths in self._tracer.paths.items()
                if self._roles.get(thread) == role
                for name, path in paths.items()
                if not landmark or name == landmark
            ]
            yield max(found, key=len)


def _runs(adapter: Adapter, kind: str, jobs: int) -> list[Run]:
    return [_one_run(adapter, kind, jobs) for _ in range(ROUNDS)]


def _one_run(adapter: Adapter, kind: str, jobs: int) -> Run:
    from jobs import tasks

    adapter.fill(kind, range(jobs))
    function: Callable[..., Any] = getattr(tasks, kind).func
    with Tracer(function.__code__) as tracer, _working(adapter) as roles:
        pass
    return Run(tracer, roles)


@contextmanager
def _working(adapter: Adapter) -> Iterator[dict[int, str]]:
    """Run the queue until no job is left; give the roles of its threads afterwards."""
    from steady_queue_core.embedding import EmbeddedQueue

    roles: dict[int, str] = {}
    queue = EmbeddedQueue()
    queue.start()
    try:
        deadline = time.monotonic() + PATIENCE
        while left := adapter.unfinished(0):
            roles |= {thread.ident or 0: _role(thread.name) for thread in threading.enumerate()}
            if time.monotonic() > deadline:
                raise TimeoutError(f"{left} jobs have not ended after {PATIENCE} s")
            time.sleep(0.05)
        yield roles
    finally:
        queue.stop()


def _role(name: str) -> str:
    if name.startswith("steady-queue-worker"):
        return "main"
    return "task" if name.removeprefix("steady-queue-").isdigit() else "other"


def _total(run: Run, role: str = "") -> int:
    return sum(run.calls_of(each).total() for each in ([role] if role else ROLES))


def _grown(few: Counter[object], many: Counter[object]) -> Counter[object]:
    grown = Counter(many)
    grown.subtract(few)
    return grown


def _own(functions: Iterable[object]) -> set[CodeType]:
    return {each for each in functions if isinstance(each, CodeType) and is_own(each)}


def _files(functions: Iterable[CodeType]) -> int:
    return len({each.co_filename for each in functions})
