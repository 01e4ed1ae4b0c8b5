"""How claimed jobs end whose tasks do not: those that must not start, and those told to end."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from functools import cache

from ...compat import Task
from ...configured_backends import own_backend
from ...dialects import ClaimedJob, Ending
from ...errors import NotRepeatedError, TaskTimeout, UnregisteredTaskError
from ...features.at_work import may_repeat
from ...features.time_limits.options import TimeLimit
from ...internal_errors import log_internal_error
from ...logging import get_logger
from ...tasks.cancellation import as_cancelled, is_requested
from ...tasks.metadata import JobMetadata
from ..base.database import DatabaseClock
from ..base.log_context import about_job
from . import outcomes
from .attempt import Attempt, RunResult
from .refusals import StartClock, refusal_of
from .time_outs import exceeded, longest_of, time_limit_of
from .unknown_tasks import UnknownTasks

logger = get_logger("steady_queue.worker")


class ClaimEnds:
    """Says when the jobs of one worker must not start or go on, and what becomes of them then."""

    def __init__(self, worker: str, clock: DatabaseClock) -> None:
        self.worker, self.clock = worker, clock
        self.start_clock = StartClock()
        #: The backend of an alias in ``TASKS``.
        self.backend_of = cache(own_backend)
        #: Returns the time limit of a job that was told to end, because it has taken longer.
        self.exceeded_limit: Callable[[int], TimeLimit | None] = lambda job_id: None
        self._unknown_tasks = UnknownTasks()

    def unknown(self, claim: ClaimedJob, error: UnregisteredTaskError) -> RunResult:
        """Return the result of a job whose task this worker does not know: the job is left to
        other workers, or the attempt fails."""
        try:
            backend, present = self.backend_of(claim.backend_name), self.clock.now()
            patience = backend.settings.unknown_task_patience
            postponed = self._unknown_tasks.postpone(claim, error, present, patience)
            if postponed is not None:
                return RunResult(postponed)
            attempt = Attempt.for_result(claim, backend, self.worker, present)
            result = attempt.failed(error, present)
        except Exception as problem:
            return self.broken(claim, problem)
        if result.outcome.ending is Ending.FAILED:
            logger.error(
                "Job %d failed: %s",
                claim.job_id,
                error,
                extra=about_job("task.refused", claim, error_type=type(error).__name__),
            )
        return result

    def cancelled(self, claim: ClaimedJob) -> RunResult:
        """Return the result of a job that was cancelled before it started."""
        try:
            return self._attempt_of(claim).cancelled(self.clock.now())
        except Exception as problem:
            return self.broken(claim, problem)

    def refused(self, claim: ClaimedJob, error: Exception) -> RunResult:
        """Return the result of a job that must not start, because of ``error``."""
        try:
            return self._attempt_of(claim).never_started(error, self.clock.now())
        except Exception as problem:
            return self.broken(claim, problem)

    def refusal_of(self, claim: ClaimedJob) -> Exception | None:
        """Return why a job that has waited in this worker must not start; ``None``: it may."""
        # Most jobs have no metadata.
        return None if claim.metadata is None else refusal_of(claim, self.start_clock.now())

    def time_limit(self, claim: ClaimedJob, task: Task) -> TimeLimit | None:
        """Return how long the attempt at a job may take."""
        return time_limit_of(claim, task, self.backend_of(claim.backend_name))

    def longest_limit(self, claim: ClaimedJob) -> TimeLimit:
        """Return the same of a job that may be told to end for other reasons."""
        attempt = self._attempt_of(claim)
        return longest_of(claim, attempt.task, attempt.backend)

    def was_interrupted(self, claim: ClaimedJob, error: BaseException) -> bool:
        """Whether a job has ended with ``error`` because the worker has told it to end."""
        return self.ending_of(claim, error) is not error

    def interrupted(self, claim: ClaimedJob, error: BaseException) -> RunResult:
        """Return the result of a job that was told to end, although ``error`` was raised outside
        of its task."""
        return self._attempt_of(claim).failed(self.ending_of(claim, error), self.clock.now())

    def ending_of(self, claim: ClaimedJob, error: BaseException) -> BaseException:
        """Return the error of an attempt that ``error`` has ended: what it was told to end with, if
        it was. After the end of its time, a task may choose another one."""
        if is_requested(claim.job_id, claim.token):
            return as_cancelled(error)
        if isinstance(error, (TaskTimeout, CancelledError)):
            limit = self.exceeded_limit(claim.job_id)
            if limit is not None:
                return exceeded(limit, error)
        return error

    def broken_off(self, claim: ClaimedJob) -> RunResult:
        """Return the result of a job that had started, and that the worker itself has ended: it
        runs again, unless it must not start twice."""
        if may_repeat(JobMetadata.read(claim.metadata)):
            return RunResult(outcomes.released(claim))
        error = NotRepeatedError(
            "The worker has stopped while it was running this job, which is to start at most once."
        )
        return self._attempt_of(claim).failed(error, self.clock.now())

    def broken(self, claim: ClaimedJob, error: BaseException) -> RunResult:
        """Return the result of a job whose row made the worker itself or the database fail."""
        log_internal_error(
            logger,
            "Job %d could not be run",
            claim.job_id,
            error=error,
            extra=about_job("task.broken", claim, error_type=type(error).__name__),
        )
        return RunResult(outcomes.unreadable(claim, self.worker, self.clock.now(), error))

    def _attempt_of(self, claim: ClaimedJob) -> Attempt:
        """Return an attempt for its result alone."""
        backend = self.backend_of(claim.backend_name)
        return Attempt.for_result(claim, backend, self.worker, self.clock.now())
