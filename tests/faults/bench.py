"""A project at work, in which one job after the other goes wrong."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..processes import proc
from ..processes.harness import Project
from ..processes.scenarios import stop_all
from .fault import Fault
from .locks import Lock
from .places import Place
from .projects import HEARTBEAT, comes_true

#: The others that a job must not harm.
OTHERS = 3
#: How many errors of jobs that have ended may be in memory: each thread may remember its last one.
ERRORS_KEPT = 5


class Bench:
    """A supervisor with all that it needs, and what it was at the beginning."""

    def __init__(self, project: Project, executor: str, places: Sequence[Place]) -> None:
        self.project, self.executor = project, executor
        self.fault, self._go = Fault(project.folder), project.folder / "go"
        self._storage: Any = project.storage
        self.supervisor = project.start()
        self.supervisor.wait_ready()
        # All that is made lazily is there then.
        for task in dict.fromkeys(place.task for place in places):
            self._others([*self._enqueue(task), *self._enqueue_others()])
        self.processes = self._processes()

    def cell(self, place: Place, error: str) -> tuple[list[str], float]:
        """Have one job meet an error at a place; return what is wrong then, and how many seconds
        the others took."""
        with self.fault.at(place.name, error):
            [faulty] = self._enqueue(place.task)
            others, began = self._enqueue_others(), time.monotonic()
            wrong = self._others(others)
            took = time.monotonic() - began
            end = self._end_of(faulty)
            if not comes_true(self.fault.met):
                wrong.append("nothing was raised there")
        if end != place.end:
            wrong.append(f"the job has {end or 'not ended'}, not {place.end}")
        return [f"{place.name}, {error}: {each}" for each in wrong + self._gone()], took

    def locked_cell(self, lock: Lock) -> tuple[list[str], float]:
        """Have rows that one job needs locked by somebody else; return the same."""
        idle = [] if lock.is_running else self.processes
        with self._frozen(idle):
            [faulty] = self._enqueue(lock.task, [lock.is_running], lock.delay)
            if lock.is_running:
                self.project.wait_started(faulty)
            with self._storage.locked(lock.statement(faulty)):
                self._go.touch()
                if lock.is_of_worker:
                    time.sleep(2 * HEARTBEAT)
                others = self._enqueue("work", [], lock.delay, OTHERS)
                self._thaw(idle)
                began = time.monotonic() + (lock.delay or 0.0)
                wrong = self._others(others)
                took = time.monotonic() - began
        self._go.unlink()
        if (end := self._end_of(faulty)) != "finished":
            wrong.append(f"the job has {end or 'not ended'}")
        return [f"{lock.name} is locked: {each}" for each in wrong + self._gone()], took

    def traces(self) -> list[str]:
        """Return what all that has left in the processes."""
        wrong = []
        for pid, (threads, files) in self.processes.items():
            found = proc.threads(pid), len(proc.open_files(pid))
            if found[0] > threads or found[1] > files + 2:
                wrong.append(f"{pid}: {threads} threads and {files} files were {found}")
        if self.executor == "threads":
            [job] = self._enqueue("count_errors")
            left = self._value_of(job) if self._end_of(job) == "finished" else "unknown"
            if not isinstance(left, int) or left > ERRORS_KEPT:
                wrong.append(f"errors of jobs that are still in memory: {left}")
        return wrong

    def close(self) -> None:
        """Stop all in good order."""
        stop_all(self.project)

    def _gone(self) -> list[str]:
        """Return which processes have ended since they were looked at last."""
        present = self._processes()
        gone = sorted(self.processes.keys() - present)
        if gone:
            self.processes = present
        return [f"processes have ended: {gone}"] if gone else []

    @contextmanager
    def _frozen(self, pids: Iterable[int]) -> Iterator[None]:
        """Stop processes for a moment; they go on at the end at the latest."""
        for pid in pids:
            self.supervisor.send(signal.SIGSTOP, pid)
        try:
            yield
        finally:
            self._thaw(pids)

    def _thaw(self, pids: Iterable[int]) -> None:
        for pid in pids:
            self.supervisor.send(signal.SIGCONT, pid)

    def _enqueue(
        self,
        task: str,
        call: Sequence[Any] = (),
        delay: float | None = None,
        times: int = 1,
    ) -> list[int]:
        calls = [list(call)] * times
        options = {} if delay is None else {"delay": delay}
        return self.project.enqueue(f"tests.faults.app.tasks:{task}", *calls, **options)

    def _enqueue_others(self) -> list[int]:
        return self._enqueue("work", times=OTHERS)

    def _others(self, jobs: list[int]) -> list[str]:
        """Return which of the other jobs have not ended as they should."""
        comes_true(lambda: all(map(self._state, jobs)))
        ends = [self._state(job) for job in jobs]
        return [f"another job has {end or 'not ended'}" for end in ends if end != "finished"]

    def _end_of(self, job: int) -> str:
        """Return how a job has ended, or nothing if it has not."""
        return comes_true(lambda: self._state(job)) or ""

    def _state(self, job: int) -> str:
        found = self.project.query(
            "SELECT j.finished_at, f.job_id FROM steady_queue_jobs j "
            "LEFT JOIN steady_queue_failed_executions f ON f.job_id = j.id WHERE j.id = ?",
            job,
        )
        if not found:
            return "been deleted"
        [(finished_at, failed)] = found
        return "failed" if failed else "finished" if finished_at else ""

    def _value_of(self, job: int) -> Any:
        query = "SELECT return_value FROM steady_queue_jobs WHERE id = ?"
        [(text,)] = self.project.query(query, job)
        return json.loads(text.rpartition(":")[2])

    def _processes(self) -> dict[int, tuple[int, int]]:
        return {
            pid: (proc.threads(pid), len(proc.open_files(pid)))
            for pid in self.supervisor.children()
        }
