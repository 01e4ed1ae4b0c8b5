"""One attempt at a job, from its claim to its outcome."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import arguments
from ...arguments import DeserializationError, TaskArgumentError
from ...compat import Task, TaskResult, TaskResultStatus
from ...dialects import ClaimedJob, Ending, Link, Outcome, Sequel
from ...errors import CANCELLED_BEFORE_START, TaskCancelled
from ...features.at_work import FORGOTTEN, meaning_of, meaning_of_loss
from ...features.attempt_ending import AttemptEnding
from ...features.meaning import EndedJob, Meaning
from ...logging import get_logger
from ...payloads import Scope, result_scope
from ...project_code import contained
from ...retries import DEFAULT, delay_of
from ...tasks.metadata import JobMetadata, delivery_of
from ...tasks.notes import AttemptNotes
from ...tasks.outbox import Outbox
from ...tasks.results import task_errors, workers_of
from ...tasks.task_context import SteadyQueueTaskContext
from ...tasks.task_result import SteadyQueueTaskResult, evolve
from ...timezones import from_utc
from ..base.journal_reader import FinishedEntry
from ..base.log_context import about_job, milliseconds
from . import outcomes, unknown_tasks
from .attempt_context import context_of
from .call_arguments import CallArguments
from .error_text import describe
from .retry_delay import backoff_delay

if TYPE_CHECKING:
    from ...backend import SteadyQueueBackend

logger = get_logger("steady_queue.worker")

#: The stored form of metadata from which the last value was taken away.
EMPTY = "{}"
#: Bytes that endings and crashes may add to the metadata of a job.
MOST_ADDED = 2**20


class RunResult(NamedTuple):
    """An outcome to store, with the payload of the signals to send once it is stored."""

    outcome: Outcome
    task_result: TaskResult | None = None
    backend: SteadyQueueBackend | None = None
    error: BaseException | None = None
    #: The name of the process that was lost with the attempt, if it was.
    lost_process: str | None = None
    #: Whether the outcome was stored by whoever ran the task; false: the claim was lost before.
    #: ``None``: it is to be stored.
    settled: bool | None = None


class Attempt:
    """The state of an attempt before and after its task runs; the caller runs the task."""

    __slots__ = (
        "_call", "_delay", "_metadata", "_notes", "_now", "_outbox", "_task_result", "args",
        "backend", "claim", "interpret", "kwargs", "started_at", "task", "using", "worker",
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
        #: Returns what an error that leaves the task stands for; raises it if the worker stops.
        self.interpret: Callable[[BaseException], BaseException] | None = None
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

    def positional_args(self) -> list[Any]:
        """Return the positional arguments, preceded by the context if the task takes it."""
        if not self.task.takes_context:
            return self.args
        return [self.context, *self.args]

    @property
    def context(self) -> SteadyQueueTaskContext:
        """What the task, and middleware, learn of the attempt."""
        if self._outbox is None:
            self._outbox = Outbox(self.backend)
        return context_of(self, self._outbox)

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
        if self.interpret is not None:
            try:
                error = self.interpret(error)
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

    def succeeded(
        self, value: Any, now: Callable[[], datetime], *, is_told: bool = True
    ) -> RunResult:
        """Return the result of a task that returned ``value``; ``is_told``: whether signals or log
        records will tell of it."""
        try:
            text = arguments.encode(value, limits=self.backend.payload_limits, root="return value")
            if self.backend.payload_codec is not None:
                text = self.backend.payload_codec.seal(text, self._result_scope())
        except TaskArgumentError as error:
            error.is_of_result = True
            return self.failed(error, now())
        outcome = outcomes.finished(
            self.claim,
            self.worker,
            self.started_at,
            text,
            self.backend.settings.preserve_finished_jobs,
        )
        if self._outbox is not None and (follow_ups := self._outbox.close()):
            outcome = outcome._replace(sequel=Sequel(follow_ups))
        outcome = self._completed(outcome)
        if not is_told and self._task_result is None:
            return RunResult(outcome)
        self._end(TaskResultStatus.SUCCESSFUL, now())
        evolve(self.task_result, _return_value=value)
        return RunResult(outcome, self.task_result, self.backend)

    def await_steps(self) -> None:
        """Wait for the steps that other threads of the task take."""
        if self._notes is not None and (steps := self._notes.running_steps) is not None:
            steps.await_ends()

    async def stop_steps(self) -> None:
        """End the steps that run beside the coroutine, which has ended."""
        if self._notes is not None and (steps := self._notes.running_steps) is not None:
            await steps.stop()

    def forget_end(self) -> None:
        """Forget what the result of a task says that has returned, but was rolled back."""
        self._task_result = None

    def journaled(self, entry: FinishedEntry) -> RunResult:
        """Return the result that a worker noted in its journal but did not live to store."""
        outcome = outcomes.journaled(self.claim, self.worker, entry)
        return self.reported(self._kept(outcome), entry.started_at)

    def reported(
        self, outcome: Outcome, ended_at: datetime, error: BaseException | None = None
    ) -> RunResult:
        """Return the result of an attempt that another process has made; ``error`` stands for the
        exception that ended it there."""
        if outcome.sequel is not None and outcome.sequel.metadata is not None:
            shown = JobMetadata.read(outcome.sequel.metadata).shown
            evolve(self.task_result, metadata=shown)
        if outcome.sequel is not None and outcome.sequel.progress is not None:
            evolve(self.task_result, progress=outcome.sequel.progress)
        if outcome.ending is Ending.FINISHED:
            self._end(TaskResultStatus.SUCCESSFUL, ended_at)
            with suppress(Exception):  # The task has finished, even if nobody learns with what.
                contained(self._show_value, outcome.return_value or "")
        else:
            self._end_unsuccessfully(outcome, ended_at)
        return RunResult(outcome, self.task_result, self.backend, error)

    def _show_value(self, text: str) -> None:
        """Let the result show a return value that another process has stored."""
        limits, codec = self.backend.payload_limits, self.backend.payload_codec
        if codec is not None:
            text = codec.open(text, self._result_scope())
        value = arguments.decode(text, resolve_models=False, limits=limits)
        evolve(self.task_result, _return_value=value)

    def raised(self, error: BaseException, now: Callable[[], datetime]) -> RunResult:
        """Return the result of a task that raised ``error``, which may be an ending that it has
        chosen."""
        meaning = self._meaning_of(error)
        if meaning.ending is AttemptEnding.SNOOZED:
            return self._put_off(meaning, now())
        if meaning.ending is AttemptEnding.DISCARDED:
            return self._discarded(meaning, now)
        if meaning.ending is AttemptEnding.RELEASED:
            self._log(meaning)
            return RunResult(outcomes.released(self.claim))
        return self.failed(meaning.error, now())

    def failed(self, error: BaseException, ended_at: datetime) -> RunResult:
        """Return the result of an attempt that ``error`` ended, before or while the task ran."""
        failure = describe(error)
        outcome = outcomes.unsuccessful(
            self.claim,
            self.worker,
            self.started_at,
            failure,
            lambda: self._retry_delay(self._meaning_of(error)),
            ended_at,
        )
        if outcome.ending is Ending.RETRIED:
            self._log_retry(outcome, failure.exception_class, ended_at)
        self._end_unsuccessfully(outcome, ended_at)
        if outcome.ending is Ending.FAILED and self._has_to_forget:
            outcome = self._with_metadata(outcome, **FORGOTTEN)
        outcome = self._completed(outcome)
        return RunResult(outcome, self.task_result, self.backend, error)

    def lost(self, error: BaseException, ended_at: datetime, process: str) -> RunResult:
        """Return the result of an attempt that was lost with its ``process``."""
        meaning = meaning_of_loss(error, process, self._ended_job)
        if meaning is None or self.claim.is_cancelled:
            return self.failed(error, ended_at)
        if meaning.ending is AttemptEnding.FAILED:
            return self.failed(meaning.error, ended_at)
        failure = describe(error)
        delay = self._retry_delay(self._meaning_of(error))
        if delay is None:  # The back-off gives up, which is not for it to decide.
            delay = delay_of(DEFAULT, error, self.task_result)
        outcome = outcomes.crashed(
            self.claim, self.worker, self.started_at, failure, delay or 0.0, ended_at
        )
        self._end_unsuccessfully(outcome, ended_at)
        outcome = self._with_metadata(outcome, **meaning.changes)
        return RunResult(outcome, self.task_result, self.backend, error)

    def cancelled(self, ended_at: datetime) -> RunResult:
        """Return the result of a job that was cancelled before it started."""
        return self.never_started(TaskCancelled(CANCELLED_BEFORE_START), ended_at)

    def never_started(self, error: BaseException, ended_at: datetime) -> RunResult:
        """Return the result of a job that must not start, because of ``error``."""
        outcome = self._kept(outcomes.never_started(self.claim, describe(error)))
        self.decode_for_signals()
        self.task_result.errors[:] = task_errors(outcome.errors)
        self.task_result.worker_ids.pop()  # This was no attempt.
        began = None if self.claim.started_at is None else from_utc(self.claim.started_at)
        evolve(self.task_result, started_at=began, last_attempted_at=began)
        self._end(TaskResultStatus.FAILED, ended_at)
        return RunResult(outcome, self.task_result, self.backend, error)

    @property
    def _ended_job(self) -> EndedJob:
        is_lost = self._notes is not None and self._notes.is_lost
        return EndedJob(self.claim.job_id, self.metadata, self.backend.settings, is_lost)

    def _meaning_of(self, error: BaseException) -> Meaning:
        return meaning_of(error, self._ended_job)

    @property
    def _has_to_forget(self) -> bool:
        if self.claim.metadata is None:
            return False
        return any(getattr(self.metadata, name) != value for name, value in FORGOTTEN.items())

    def _put_off(self, meaning: Meaning, ended_at: datetime) -> RunResult:
        """Return the result of an attempt that another one follows, and that is not counted."""
        delay = meaning.delay or 0.0
        outcome = outcomes.snoozed(self.claim, self.started_at, delay)
        self._log(
            meaning,
            status=outcome.ending.value,
            delay_ms=round(delay * 1000),
            duration_ms=milliseconds(self.started_at, ended_at),
        )
        if meaning.changes:
            outcome = self._with_metadata(outcome, **meaning.changes)
        return RunResult(self._noted(outcome))

    def _discarded(self, meaning: Meaning, now: Callable[[], datetime]) -> RunResult:
        """Return the result of an attempt that has ended its job without a failure."""
        self._outbox = None  # It was left by an attempt that has raised something.
        done = self.succeeded(None, now)
        outcome = self._with_metadata(done.outcome, **meaning.changes)
        evolve(self.task_result, metadata=self.metadata.shown)
        self._log(meaning, status=outcome.ending.value)
        return done._replace(outcome=outcome)

    def _log(self, meaning: Meaning, **details: Any) -> None:
        if (report := meaning.report) is not None:
            logger.info(
                report.text,
                self.claim.job_id,
                self.claim.task_path,
                *report.values,
                extra=about_job(report.event, self.claim, **details),
            )

    def _with_metadata(self, outcome: Outcome, **changes: Any) -> Outcome:
        """Return ``outcome`` with ``changes`` of the job's metadata."""
        self._metadata = replace(self.metadata, **changes)
        limits = self.backend.payload_limits
        # What the caller has passed may be as large as they allow.
        text = self._metadata.text(replace(limits, max_bytes=limits.max_bytes + MOST_ADDED))
        sequel = (outcome.sequel or Sequel())._replace(metadata=text or EMPTY, is_implied=False)
        return outcome._replace(sequel=sequel)

    def _completed(self, outcome: Outcome) -> Outcome:
        """Return ``outcome`` with what follows from the options of the job and from its task."""
        # As for most jobs.
        if self.claim.metadata is None and self._notes is None:
            return outcome
        return self._noted(self._kept(outcome))

    def _kept(self, outcome: Outcome) -> Outcome:
        """Return ``outcome`` with how long the job is kept, if it says so itself."""
        if self.claim.metadata is None:
            return outcome
        return outcomes.kept(
            outcome, self.metadata, self.backend.settings.clear_finished_jobs_after
        )

    def _noted(self, outcome: Outcome) -> Outcome:
        """Return ``outcome`` with what it entails for what the task has stored."""
        if self._notes is None:
            return outcome
        if self._notes.latest is not None and self._task_result is not None:
            evolve(self._task_result, progress=self._notes.latest)
        return self._notes.added_to(outcome)

    def _result_scope(self) -> Scope:
        return result_scope(self.claim, self.claim.job_id)

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

    def _log_retry(self, outcome: Outcome, error_type: str, ended_at: datetime) -> None:
        logger.info(
            "Task id=%s path=%s failed in attempt %d of %d, retry in %.1f s: %s",
            self.task_result.id,
            self.claim.task_path,
            outcome.attempts,
            self.claim.max_attempts,
            outcome.delay,
            error_type,
            extra=about_job(
                "task.retried",
                self.claim,
                status=outcome.ending.value,
                error_type=error_type,
                delay_ms=round(outcome.delay * 1000),
                duration_ms=milliseconds(self.started_at, ended_at),
            ),
        )

    def _end_unsuccessfully(self, outcome: Outcome, ended_at: datetime) -> None:
        self.task_result.errors[:] = task_errors(outcome.errors)
        if outcome.ending is Ending.RETRIED:
            evolve(self.task_result, status=TaskResultStatus.READY)
        else:
            self._end(TaskResultStatus.FAILED, ended_at)

    def _end(self, status: TaskResultStatus, ended_at: datetime) -> None:
        evolve(self.task_result, status=status, finished_at=from_utc(ended_at))
