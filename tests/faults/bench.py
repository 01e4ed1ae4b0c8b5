"""A project at work, in which one job after the other goes wrong."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from ..processes import proc
from ..processes.harness import Project
from ..processes.scenarios import stop_all
from ..processes.waiting import wait_for
from ..servers.address import Address
from .locks import Lock
from .places import PLACES, Place

T = TypeVar("T")

EXTRA = """
INSTALLED_APPS += ["tests.faults.app"]
TASKS["default"]["OPTIONS"] = {
    "middleware": ["tests.faults.app.tasks.Surrounding"],
    "error_reporter": "tests.faults.app.tasks.report",
}
# What Django logs of failed tasks is not of interest here.
for logger in ("django.tasks", "django_tasks"):
    LOGGING["loggers"][logger] = {"level": "CRITICAL", "propagate": False}
"""
HEARTBEAT = 0.5
WORKER = {"processes": 1, "threads": 3, "polling_interval": 0.02}
QUEUE = {
    "dispatchers": [{"polling_interval": 0.05}],
    "task_modules": ["tests.faultapp.tasks", "tests.faults.app.tasks"],
    "process_heartbeat_interval": HEARTBEAT,
}
#: The others that a job must not harm.
OTHERS = 3
#: Seconds that they may take at the most, on a machine with much else to do.
PATIENCE = 10.0


def comes_true(condition: Callable[[], T]) -> T | None:
    """Return the first true value of a condition; ``None``: there was none."""
    with suppress(AssertionError):
        return wait_for(condition, PATIENCE)
    return None


class Bench:
    """A supervisor with all that it needs, and what it was at the beginning."""

    def __init__(self, folder: Path, server: Address | None, executor: str) -> None:
        queue = {**QUEUE, "workers": [{**WORKER, "executor": executor}]}
        self.project = Project(folder, None, queue, EXTRA, server=server)
        self._switch, self._met, self._go = (folder / name for name in ("fault", "met", "go"))
        self._switch.write_text("")
        if server is None:
            self.project.migrate()
        self._storage: Any = self.project.storage
        self.supervisor = self.project.start()
        try:
            self.supervisor.wait_ready()
            self._work_well()  # All that is made lazily is there then.
            self.processes = self._processes()
        except BaseException:
            self.project.close()
            raise

    def cell(self, place: Place, error: str) -> tuple[list[str], float]:
        """Have one job meet an error at a place; return what is wrong then, and how many seconds
        the others took."""
        with self._fault(place.name, error):
            [faulty] = self._enqueue(place.task)
            others, began = self._enqueue_others(), time.monotonic()
            wrong = self._others(others)
            took = time.monotonic() - began
            end = self._end_of(faulty)
            if not self._is_met():
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
        return wrong

    def close(self) -> None:
        try:
            stop_all(self.project)
        finally:
            self.project.close()

    @contextmanager
    def _fault(self, place: str, error: str) -> Iterator[None]:
        self._set(f"{place}\n{error}")
        try:
            yield
        finally:
            self._set("")

    def _is_met(self) -> bool:
        """Whether the error was raised; wait for that."""
        met = comes_true(self._met.exists)
        self._met.unlink(missing_ok=True)
        return bool(met)

    def _set(self, text: str) -> None:
        written = self._switch.with_suffix(".new")
        written.write_text(text)
        written.rename(self._switch)

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

    def _work_well(self) -> None:
        for task in dict.fromkeys(place.task for place in PLACES):
            self._others([*self._enqueue(task), *self._enqueue_others()])

    def _others(self, jobs: list[int]) -> list[str]:
        ends = [self._end_of(job) for job in jobs]
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

    def _processes(self) -> dict[int, tuple[int, int]]:
        return {
            pid: (proc.threads(pid), len(proc.open_files(pid)))
            for pid in self.supervisor.children()
        }
