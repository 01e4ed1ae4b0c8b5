"""One attempt at a job: from the claim to its outcome."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import arguments
from ...arguments import DeserializationError, TaskArgumentError
from ...compat import Task, TaskResult, TaskResultStatus
from ...configuration import ConfigurationError
from ...dialects import ClaimedJob, Ending, Outcome
from ...logging import get_logger
from ...retries import delay_of
from ...tasks.definition import SteadyQueueTask, SteadyQueueTaskContext, SteadyQueueTaskResult
from ...tasks.model_arguments import require_permitted_models
from ...tasks.results import task_errors, workers_of
from ...timezones import from_utc
from ..base.journal_reader import Ended
from ..base.log_context import about_job, milliseconds
from . import outcomes, unknown_tasks
from .error_text import describe

if TYPE_CHECKING:
    from ...backend import SteadyQueueBackend

logger = get_logger("steady_queue.worker")


class Done(NamedTuple):
    """An outcome to be stored, and what to tell the project when it is."""

    outcome: Outcome
    result: TaskResult | None = None
    backend: SteadyQueueBackend | None = None
    error: BaseException | None = None


class Attempt:
    """Holds what an attempt needs to begin and to end; the caller runs the task in between."""

    __slots__ = ("backend", "claim", "result", "started_at", "task", "worker")

    def __init__(
        self,
        claim: ClaimedJob,
        task: Task,
        backend: SteadyQueueBackend,
        worker: str,
        started_at: datetime,
    ) -> None:
        if claim.errors:
            claim = unknown_tasks.found(claim)
        self.claim, self.task, self.backend = claim, task, backend
        self.worker, self.started_at = worker, started_at
        first = claim.started_at or started_at
        self.result: TaskResult = SteadyQueueTaskResult(
            task=task,
            id=str(claim.job_id),
            status=TaskResultStatus.RUNNING,
            enqueued_at=from_utc(claim.enqueued_at),
            started_at=from_utc(first),
            finished_at=None,
            last_attempted_at=from_utc(started_at),
            args=[],
            kwargs={},
            backend=claim.backend_name,
            errors=task_errors(claim.errors) if claim.errors else [],
            worker_ids=[*workers_of(claim.worker_ids), worker],
        )

    @property
    def needs_models(self) -> bool:
        """Whether decoding the arguments queries the database."""
        # SQLite lets a row hold something other than text.
        return arguments.has_models(str(self.claim.arguments))

    def decode(self) -> None:
        """Decode the arguments. Raises ``DeserializationError``."""
        limits = self.backend.payload_limits
        if self.needs_models:
            args, kwargs = arguments.decode_call(
                self.claim.arguments, resolve_models=False, limits=limits
            )
            permitted = self.backend.settings.argument_models
            require_permitted_models(self.task, args, kwargs, permitted)
        args, kwargs = arguments.decode_call(
            self.claim.arguments, resolve_models=True, limits=limits
        )
        object.__setattr__(self.result, "args", args)
        object.__setattr__(self.result, "kwargs", kwargs)

    def recall(self) -> None:
        """Show the arguments, as far as they can be read, to those who are told of the end."""
        with suppress(DeserializationError):
            args, kwargs = arguments.decode_call(
                self.claim.arguments, resolve_models=False, limits=self.backend.payload_limits
            )
            object.__setattr__(self.result, "args", args)
            object.__setattr__(self.result, "kwargs", kwargs)

    def positional(self) -> list[Any]:
        """Return the positional arguments, the context first if the task takes it."""
        if not self.task.takes_context:
            return self.result.args
        context = SteadyQueueTaskContext(task_result=self.result, token=self.claim.token)
        return [context, *self.result.args]

    def succeeded(self, value: Any, ended_at: datetime) -> Done:
        """Return the outcome of a task that returned ``value``."""
        try:
            text = arguments.encode(value, limits=self.backend.payload_limits, root="return value")
        except TaskArgumentError as error:
            return self.failed(error, ended_at)
        outcome = outcomes.finished(
            self.claim,
            self.worker,
            self.started_at,
            text,
            self.backend.settings.preserve_finished_jobs,
        )
        self._end(TaskResultStatus.SUCCESSFUL, ended_at)
        object.__setattr__(self.result, "_return_value", value)
        return Done(outcome, self.result, self.backend)

    def remembered(self, ended: Ended) -> Done:
        """Return the outcome that a worker had noted, and did not live to store."""
        outcome = outcomes.finished(
            self.claim, self.worker, ended.started_at, ended.return_value, ended.preserve
        )
        self._end(TaskResultStatus.SUCCESSFUL, ended.started_at)
        with suppress(DeserializationError):
            limits = self.backend.payload_limits
            value = arguments.decode(ended.return_value, resolve_models=False, limits=limits)
            object.__setattr__(self.result, "_return_value", value)
        return Done(outcome, self.result, self.backend)

    def failed(self, error: BaseException, ended_at: datetime) -> Done:
        """Return the outcome of a task that raised ``error``, or could not begin for it."""
        failure = describe(error)
        outcome = outcomes.unsuccessful(
            self.claim,
            self.worker,
            self.started_at,
            failure,
            lambda: self._delay(error),
        )
        self.result.errors[:] = task_errors(outcome.errors)
        if outcome.ending is Ending.RETRIED:
            logger.info(
                "Task id=%s path=%s failed in attempt %d of %d, again in %.1f s: %s",
                self.result.id,
                self.claim.task_path,
                outcome.attempts,
                self.claim.max_attempts,
                outcome.delay,
                failure.exception_class,
                extra=about_job(
                    "task.retried",
                    self.claim,
                    status=outcome.ending.value,
                    error_type=failure.exception_class,
                    delay_ms=round(outcome.delay * 1000),
                    duration_ms=milliseconds(self.started_at, ended_at),
                ),
            )
            object.__setattr__(self.result, "status", TaskResultStatus.READY)
            return Done(outcome, self.result, self.backend, error)
        self._end(TaskResultStatus.FAILED, ended_at)
        return Done(outcome, self.result, self.backend, error)

    def _delay(self, error: BaseException) -> float | None:
        if isinstance(error, DeserializationError):
            return None  # It will not go better the next time.
        backoff = None
        if isinstance(self.task, SteadyQueueTask):
            backoff = self.task.backoff
        try:
            return delay_of(backoff or self.backend.settings.resolve_backoff(), error, self.result)
        except (ConfigurationError, ValueError):
            logger.exception(
                "The back-off of task %s failed: no retry",
                self.claim.task_path,
                extra=about_job("task.backoff_failed", self.claim),
            )
            return None

    def _end(self, status: TaskResultStatus, ended_at: datetime) -> None:
        object.__setattr__(self.result, "status", status)
        object.__setattr__(self.result, "finished_at", from_utc(ended_at))
