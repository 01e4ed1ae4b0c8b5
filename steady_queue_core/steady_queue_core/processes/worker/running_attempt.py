"""An attempt while its task runs: its arguments, its context, and what errors would mean."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from ...arguments import DeserializationError
from ...batches.batch import Batch
from ...batches.workflow import workflow_of
from ...compat import Task, TaskResult, TaskResultStatus
from ...dialects import ClaimedJob, Link
from ...features.at_work import meaning_of
from ...features.attempt_ending import AttemptEnding
from ...features.meaning import EndedJob, Meaning
from ...middleware import QuietCall
from ...tasks.definition import SteadyQueueTask
from ...tasks.metadata import JobMetadata, delivery_of
from ...tasks.notes import AttemptNotes
from ...tasks.outbox import Outbox
from ...tasks.results import task_errors, workers_of
from ...tasks.task_context import SteadyQueueTaskContext
from ...tasks.task_result import SteadyQueueTaskResult
from ...timezones import from_utc
from . import unknown_tasks
from .call_arguments import CallArguments
from .retry_delay import backoff_delay
from .time_outs import time_limit_of

if TYPE_CHECKING:
    from ...backend import SteadyQueueBackend

Interpret = Callable[[ClaimedJob, BaseException], BaseException]
"""Returns what an error stands for that leaves the task of a job; raises it if the worker stops."""


class RunningAttempt:
    """The state of an attempt, and the call of its task."""

    __slots__ = (
        "_call", "_delay", "_interpret", "_metadata", "_notes", "_now", "_outbox", "_task_result",
        "args", "backend", "claim", "kwargs", "started_at", "task", "using", "worker",
    )  # fmt: skip

    def __init__(
        self,
        claim: ClaimedJob,
        task: Task,
        backend: SteadyQueueBackend,
        worker: str,
        started_at: datetime,
        using: str | None = None,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        if claim.errors:
            claim = unknown_tasks.without_note(claim)
        self.claim, self.task, self.backend = claim, task, backend
        self.worker, self.started_at = worker, started_at
        #: The alias of the job's database; ``None``: that of its backend.
        self.using = using
        #: Tells the database's time while the task runs; ``None``: it does not run.
        self._now = now
        #: The arguments of the call, once they are decoded.
        self.args: list[Any] = []
        self.kwargs: dict[str, Any] = {}
        self._task_result: TaskResult | None = None
        self._call = CallArguments(claim, backend)
        self._metadata: JobMetadata | None = None
        #: What the task leaves to the transaction of its outcome, if it was given a context.
        self._outbox: Outbox | None = None
        #: What the task stores while it runs, if it was given a context.
        self._notes: AttemptNotes | None = None
        self._interpret: Interpret | None = None
        #: The error that was asked about last, and the seconds until the next attempt.
        self._delay: tuple[BaseException, float | None] | None = None

    @property
    def metadata(self) -> JobMetadata:
        """The metadata of the job, read when somebody asks."""
        if self._metadata is None:
            self._metadata = JobMetadata.read(self.claim.metadata)
        return self._metadata

    @property
    def task_result(self) -> TaskResult:
        """The result of the job so far, built when somebody looks at it."""
        if self._task_result is None:
            claim = self.claim
            self._task_result = SteadyQueueTaskResult(
                task=self.task,
                id=str(claim.job_id),
                status=TaskResultStatus.RUNNING,
                enqueued_at=from_utc(claim.enqueued_at),
                started_at=from_utc(claim.started_at or self.started_at),
                finished_at=None,
                last_attempted_at=from_utc(self.started_at),
                args=self.args,
                kwargs=self.kwargs,
                backend=claim.backend_name,
                errors=task_errors(claim.errors) if claim.errors else [],
                worker_ids=[*workers_of(claim.worker_ids), self.worker],
                metadata={} if claim.metadata is None else self.metadata.shown,
            )
        return self._task_result

    @property
    def needs_models(self) -> bool:
        """Whether decoding the arguments queries the database, for models or for results of
        other jobs. Raises ``PayloadError``."""
        return self._call.needs_models

    def decode(self) -> None:
        """Decode the arguments. Raises ``DeserializationError``."""
        self.args, self.kwargs = self._call.decode(self.task, self.using)

    def decode_for_signals(self) -> None:
        """Decode the arguments without their models, or leave them empty if they are unreadable."""
        with suppress(DeserializationError):
            self.args, self.kwargs = self._call.decode_without_models()

    def call(self, interpret: Interpret | None = None) -> Any:
        """Call the function of the task, through the middleware of its backend if there is any."""
        task, chain = self.task, self.backend.middleware
        # ``Task.call`` asks each time whether it is a coroutine.
        function = task.func if type(task) is SteadyQueueTask else task.call
        if chain is None and not task.takes_context:
            return function(*self.args, **self.kwargs)
        try:
            if chain is None:
                return function(*self._positional_args(), **self.kwargs)
            self._interpret = interpret
            run = QuietCall(function, *self._positional_args(), **self.kwargs)
            return chain.execute(self.context, run)
        finally:
            # Other threads of the task may still take steps.
            if self._notes is not None and (steps := self._notes.running_steps) is not None:
                steps.await_ends()

    async def acall(self, interpret: Interpret | None = None) -> Any:
        """Async version of :meth:`call`, for a task that is a coroutine."""
        task, chain = self.task, self.backend.middleware
        function = task.func if type(task) is SteadyQueueTask else task.acall
        if chain is None and not task.takes_context:
            return await function(*self.args, **self.kwargs)
        try:
            if chain is None:
                return await function(*self._positional_args(), **self.kwargs)
            self._interpret = interpret
            run = QuietCall(function, *self._positional_args(), **self.kwargs)
            return await chain.aexecute(self.context, run)
        finally:
            # Steps may run beside the coroutine, which has ended.
            if self._notes is not None and (steps := self._notes.running_steps) is not None:
                await steps.stop()

    def _positional_args(self) -> list[Any]:
        """Return the positional arguments, preceded by the context if the task takes it."""
        if not self.task.takes_context:
            return self.args
        return [self.context, *self.args]

    @property
    def context(self) -> SteadyQueueTaskContext:
        """What the task, and middleware, learn of the attempt."""
        if self._outbox is None:
            self._outbox = Outbox(self.backend)
        limit = time_limit_of(self.claim, self.task, self.backend)
        end = None if limit is None else self.started_at + timedelta(seconds=limit.timeout)
        link = Link.of(self.metadata.batch)
        return SteadyQueueTaskContext(
            task_result=self.task_result,
            token=self.claim.token,
            outbox=self._outbox,
            deadline=None if end is None else from_utc(end),
            intended_time=self.metadata.intended_time,
            find_batch=link and partial(Batch.of, link.batch_id, self.backend),
            find_workflow=link and partial(workflow_of, link.batch_id, self.backend),
            notes=self.notes,
            running=self,
        )

    @property
    def headers(self) -> dict[str, str]:
        """What middleware has given the job on its way."""
        return {} if self.claim.metadata is None else dict(self.metadata.headers)

    @property
    def batch_id(self) -> int | None:
        """The batch that the job has to do with."""
        link = Link.of(self.metadata.batch)
        return None if link is None else link.batch_id

    @property
    def size(self) -> int:
        """Bytes of the encoded arguments."""
        # SQLite lets a row hold something other than text.
        return len(str(self._call.text))

    def ending_of(self, error: BaseException | None) -> AttemptEnding:
        """Return how the attempt ends if ``error`` leaves the task; ``None``: it returns."""
        if error is None:
            return AttemptEnding.FINISHED
        if self._interpret is not None:
            try:
                error = self._interpret(self.claim, error)
            except BaseException:
                return AttemptEnding.RELEASED
        meaning = self._meaning_of(error)
        if meaning.ending not in (None, AttemptEnding.RETRIED):
            return meaning.ending
        is_last = self.claim.attempts + 1 >= self.claim.max_attempts
        if is_last or self._retry_delay(meaning) is None:
            return AttemptEnding.FAILED
        return AttemptEnding.RETRIED

    @property
    def notes(self) -> AttemptNotes:
        """What the task stores while it runs."""
        if self._notes is None:
            self._notes = AttemptNotes(
                self.claim,
                self.backend,
                self.using,
                now=self._now or (lambda: self.started_at),
                delivery=delivery_of(self.claim),
            )
        return self._notes

    def forget_end(self) -> None:
        """Forget what the result of a task says that has returned, but was rolled back."""
        self._task_result = None

    @property
    def _ended_job(self) -> EndedJob:
        is_lost = self._notes is not None and self._notes.is_lost
        return EndedJob(self.claim.job_id, self.metadata, self.backend.settings, is_lost)

    def _meaning_of(self, error: BaseException) -> Meaning:
        return meaning_of(error, self._ended_job)

    def _retry_delay(self, meaning: Meaning) -> float | None:
        """Return the seconds until the next attempt; ``None``: there is none."""
        if meaning.ending is not None:
            return meaning.delay
        error = meaning.error
        # Middleware and the outcome have to agree, also if the back-off is random.
        if self._delay is None or self._delay[0] is not error:
            delay = backoff_delay(error, self.claim, self.task, self.backend, self.task_result)
            self._delay = error, delay
        return self._delay[1]
