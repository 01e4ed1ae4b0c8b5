"""Attempts that may take a limited time: how long, who is told to end, and who has not ended."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Condition, Thread
from typing import TYPE_CHECKING, NamedTuple

from ...compat import Task
from ...dialects import ClaimedJob
from ...errors import TaskCancelled, TaskTimeout
from ...features.time_limits.options import TimeLimit, time_limit
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...tasks.metadata import NONE, JobMetadata

if TYPE_CHECKING:
    from ...backend import SteadyQueueBackend

logger = get_logger("steady_queue.worker")

#: Seconds between two looks at a job that is not to be blamed for its delay.
DELAY = 0.5


def time_limit_of(claim: ClaimedJob, task: Task, backend: SteadyQueueBackend) -> TimeLimit | None:
    """Return the limit that the call, the task or the backend sets, the first of these that does;
    ``None``: the attempt may take any time."""
    of_task, settings = getattr(task, "timeout", None), backend.settings
    # Most jobs have no metadata, and most tasks no time-out.
    if claim.metadata is None and of_task is None and settings.timeout is None:
        return None
    limit = longest_of(claim, task, backend)
    return None if limit.timeout == math.inf else limit


def longest_of(claim: ClaimedJob, task: Task, backend: SteadyQueueBackend) -> TimeLimit:
    """Return the same limit, an infinite one if the attempt may take any time: it may be told to
    end for other reasons."""
    of_task, settings = getattr(task, "timeout", None), backend.settings
    of_call = NONE if claim.metadata is None else JobMetadata.read(claim.metadata)
    return time_limit(
        [of_call.timeout, of_task, settings.timeout],
        [of_call.timeout_grace, getattr(task, "timeout_grace", None), settings.timeout_grace],
    )


class Timed(NamedTuple):
    """A running attempt with a time limit, by the monotonic clock."""

    claim: ClaimedJob
    limit: TimeLimit
    #: When to tell it to end.
    due: float
    #: When to give it up, once it was told.
    hopeless: float
    is_told: bool = False

    @property
    def next(self) -> float:
        """When there is something to do."""
        return self.hopeless if self.is_told else self.due


class TimeOuts:
    """Tells attempts to end when their time is over, in a thread of its own, which starts with the
    first of them: neither the database nor the tasks can keep it waiting.

    ``tell(claim)`` tells the attempt to end; ``give_up(claim)`` is called if it still runs after
    its grace, and returns false if something else keeps it from ending, so that it has to wait.
    ``report(claim)`` is called after ``tell``; it may take its time.
    """

    def __init__(
        self,
        tell: Callable[[ClaimedJob], None],
        give_up: Callable[[ClaimedJob], bool],
        report: Callable[[ClaimedJob], None],
    ) -> None:
        self._tell, self._give_up, self._report = tell, give_up, report
        #: The attempts that run, and have a limit.
        self.watched: dict[int, Timed] = {}
        #: Held while an attempt is told: an attempt that has ended is not told any more.
        self._changed = Condition()
        self._thread: Thread | None = None
        self._wakes_at = 0.0
        self._is_closed = False
        #: Jobs that were given up.
        self.stuck: set[int] = set()

    def begin(self, claim: ClaimedJob, limit: TimeLimit) -> None:
        """Watch an attempt that begins now."""
        due = time.monotonic() + limit.timeout
        self._watch_one(Timed(claim, limit, due, due + limit.longest_grace))

    def note_told(self, claim: ClaimedJob, limit: TimeLimit) -> None:
        """Watch an attempt that was told to end for another reason."""
        now = time.monotonic()
        self._watch_one(Timed(claim, limit, now, now + limit.longest_grace, is_told=True))

    def _watch_one(self, timed: Timed) -> None:
        with self._changed:
            self.watched[timed.claim.job_id] = timed
            if self._thread is None:
                self._start()
            elif timed.next < self._wakes_at:
                self._changed.notify()

    def end(self, job_id: int) -> None:
        """Stop watching an attempt, which has ended."""
        with self._changed:
            self.watched.pop(job_id, None)
            self.stuck.discard(job_id)

    def expired(self, job_id: int) -> TimeLimit | None:
        """Return the limit of an attempt that was told to end."""
        timed = self.watched.get(job_id)
        return timed.limit if timed is not None and timed.is_told else None

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _start(self) -> None:
        thread = Thread(target=self._watch, name="steady-queue-time-outs", daemon=True)
        thread.start()  # There may be no more threads: the next job tries again.
        self._thread = thread

    def _watch(self) -> None:
        while not self._is_closed:
            with self._changed:
                due = self._act_on_due()
                if not due:
                    # A job that ends before leaves us a time at which there is nothing to do.
                    moments = [each.next for each in self.watched.values()]
                    self._wakes_at = min(moments, default=math.inf)
                    if not self._is_closed:
                        self._changed.wait(_pause(self._wakes_at))
            # Not while others would have to wait: a task may hold the lock of a log.
            for timed in due:
                if not timed.is_told:
                    self._report(timed.claim)

    def _act_on_due(self) -> list[Timed]:
        """Do what is due; return what it was."""
        now = time.monotonic()
        due = [each for each in self.watched.values() if each.next <= now]
        for timed in due:
            self._act(timed.claim.job_id, timed, now)
        return due

    def _act(self, job_id: int, timed: Timed, now: float) -> None:
        try:
            if not timed.is_told:
                # In this order: what the attempt ends with is then known to be our doing.
                self.watched[job_id] = timed._replace(is_told=True)
                self._tell(timed.claim)
            elif self._give_up(timed.claim):
                self.stuck.add(job_id)
                self.watched[job_id] = timed._replace(hopeless=math.inf)
            else:
                self.watched[job_id] = timed._replace(hopeless=now + DELAY)
        except Exception as error:
            again = now + DELAY
            grace = 0.0 if timed.is_told else timed.limit.longest_grace
            self.watched[job_id] = timed._replace(due=again, hopeless=again + grace)
            log_internal_error(
                logger,
                "Job %d could not be told that its time is over",
                job_id,
                error=error,
                extra=about("worker.time_out_failed", task_id=str(job_id)),
            )


def _pause(until: float) -> float | None:
    # Conditions take no infinite time-outs.
    return None if until == math.inf else max(0.0, min(until - time.monotonic(), 3600.0))


def exceeded(limit: TimeLimit, error: BaseException | None = None) -> TaskTimeout:
    """Return the error of an attempt that has taken too long; ``error`` is what ended it."""
    found = TaskTimeout(f"The attempt has taken longer than its time-out of {limit.timeout:g} s.")
    if isinstance(error, TaskTimeout):
        return found.with_traceback(error.__traceback__)
    found.__cause__ = error
    return found


def given_up(claim: ClaimedJob, limit: TimeLimit) -> TaskTimeout | TaskCancelled:
    """Return the error of an attempt that ran on until its worker was ended."""
    told = f"did not end in the next {limit.longest_grace:g} s: its worker was replaced."
    if claim.is_cancelled:
        return TaskCancelled(f"The job was cancelled while it ran, and {told}")
    if limit.timeout == math.inf:  # The code or the settings have changed meanwhile.
        return TaskTimeout(f"The attempt has taken longer than its time-out, and {told}")
    return TaskTimeout(
        f"The attempt has taken longer than its time-out of {limit.timeout:g} s and {told}"
    )
