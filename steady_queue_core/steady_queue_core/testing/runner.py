"""Runs the tasks that a test has enqueued, like a worker with one thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta

from asgiref.sync import sync_to_async

from ..compat import AnyTaskResult, task_backends
from ..dialects import ClaimedJob, Ending, QueueSelector
from ..endings import Retry
from ..features.queue_limits.lengths import forget as forget_lengths
from ..processes.worker.attempt import RunResult
from ..timezones import to_utc
from .attempts import perform
from .backends import MemoryBackend
from .enqueued import EnqueuedTask, captured_tasks
from .jobs import Jobs, selector_of
from .stored import StoredJobs, databases

#: Attempts that count as an endless loop, unless the test sets a limit.
ENDLESS = 1_000


def run_enqueued_tasks(
    queues: str | Iterable[str] | None = None,
    until: datetime | timedelta | None = None,
    limit: int | None = None,
    raise_errors: bool = True,
    using: str | None = None,
) -> list[AnyTaskResult]:
    """Run what was enqueued, and what that enqueues; return the results, in the order in which
    the jobs first ran.

    ``queues``: names or patterns, as a worker has them. ``until``: run also what is due until then,
    a datetime or a timedelta from now. ``limit``: at most so many attempts. ``raise_errors``: raise
    the first exception of a task, after its outcome was stored. ``using``: the alias of a database.
    """
    with _jobs_of_the_test(selector_of(queues), using) as sources:
        runner = Runner(sources, until, limit, raise_errors)
        runner.run()
    forget_lengths()
    return list(runner.results.values())


async def arun_enqueued_tasks(
    queues: str | Iterable[str] | None = None,
    until: datetime | timedelta | None = None,
    limit: int | None = None,
    raise_errors: bool = True,
    using: str | None = None,
) -> list[AnyTaskResult]:
    """Async version of :func:`run_enqueued_tasks`."""
    run = sync_to_async(run_enqueued_tasks, thread_sensitive=True)
    results: list[AnyTaskResult] = await run(queues, until, limit, raise_errors, using)
    return results


@contextmanager
def _jobs_of_the_test(selector: QueueSelector, using: str | None) -> Iterator[list[Jobs]]:
    kept = [task_backends[alias] for alias in task_backends] if using is None else []
    sources: list[Jobs] = [
        backend.jobs.serving(selector) for backend in kept if isinstance(backend, MemoryBackend)
    ]
    with ExitStack() as stack:
        stored = databases() if using is None else [using]
        sources += [stack.enter_context(StoredJobs.opened(each, selector)) for each in stored]
        yield sources


class Runner:
    """Runs jobs one after the other; when none is ready, time moves on to the next that is due."""

    def __init__(
        self,
        sources: Sequence[Jobs],
        until: datetime | timedelta | None,
        limit: int | None,
        raise_errors: bool,
    ) -> None:
        self.sources, self.raise_errors = sources, raise_errors
        self.limit = limit
        #: The result of each job that ran, by where it is and its id.
        self.results: dict[tuple[int, int], AnyTaskResult] = {}
        #: The time to which the test has moved the clock; it stands still while a task runs.
        self.clock = None if until is None else self._present()
        self._until = self._end(until)
        self._attempts = 0

    def run(self) -> None:
        """Run until no due job is left."""
        while self.limit is None or self._attempts < self.limit:
            found = self._claim()
            if found is not None:
                self._run(*found)
            elif not self._move_on():
                return

    def _claim(self) -> tuple[Jobs, ClaimedJob] | None:
        for jobs in self.sources:
            claim = jobs.claim()
            if claim is not None:
                return jobs, claim
        return None

    def _run(self, jobs: Jobs, claim: ClaimedJob) -> None:
        self._attempts += 1
        if self.limit is None and self._attempts > ENDLESS:
            raise RuntimeError(
                f"{ENDLESS} attempts have run, and there is no end. If there are so many, say so "
                f"with limit=...; the next is {claim.task_path} #{claim.job_id}"
            )
        with captured_tasks() as enqueued:
            done = perform(jobs, claim, self.clock)
        if done.task_result is not None:
            self.results[id(jobs), claim.job_id] = done.task_result
        if self.clock is not None:
            self._put_off(self.clock, jobs, done, enqueued)
        chosen = done.outcome.ending is Ending.RETRIED and isinstance(done.error, Retry)
        if done.error is not None and self.raise_errors and not chosen:
            attempt = f"attempt {done.outcome.attempts} of {claim.max_attempts}"
            done.error.add_note(f"in the task {claim.task_path} #{claim.job_id}, {attempt}")
            raise done.error

    def _put_off(
        self, clock: datetime, jobs: Jobs, done: RunResult, enqueued: Sequence[EnqueuedTask]
    ) -> None:
        """Count the delays that the task has set from the time at which it ran."""
        outcome = done.outcome
        if outcome.ending is Ending.RETRIED and outcome.delay:
            jobs.put_off(outcome.job_id, clock + timedelta(seconds=outcome.delay))
        for each in enqueued:
            delay: timedelta | None = getattr(each.task, "delay", None)
            place = next((jobs for jobs in self.sources if jobs.keeps(each.result)), None)
            if delay is not None and place is not None:
                place.put_off(int(each.result.id), clock + delay)

    def _move_on(self) -> bool:
        """Make the next due jobs ready; return whether there are any."""
        due = [instant for jobs in self.sources if (instant := jobs.next_due()) is not None]
        if not due:
            return False
        following, present = min(due), self._present()
        if following > (self._until or present):
            return False
        if self.clock is not None:
            self.clock = max(self.clock, following)
        for jobs in self.sources:
            jobs.make_due(following)
        return True

    def _present(self) -> datetime:
        return self.sources[0].present() if self.sources else datetime.now(UTC)

    def _end(self, until: datetime | timedelta | None) -> datetime | None:
        if self.clock is not None and isinstance(until, timedelta):
            return self.clock + until
        return to_utc(until) if isinstance(until, datetime) else None
