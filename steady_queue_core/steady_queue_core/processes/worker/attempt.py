"""One attempt at a job, from its claim to its outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ... import arguments
from ...arguments import DeserializationError, TaskArgumentError
from ...batches.batch import Batch
from ...batches.parent_results import ParentResults
from ...batches.workflow import workflow_of
from ...compat import Task, TaskResult, TaskResultStatus
from ...configuration import ConfigurationError
from ...dialects import ClaimedJob, Ending, Link, Outcome, Sequel
from ...endings import Discard, Fail, Retry, Snooze, usable
from ...errors import (
    CANCELLED_BEFORE_START,
    Preempted,
    StepOrderError,
    TaskCancelled,
    TooManyCrashesError,
    TooManySnoozesError,
    TransactionEndedError,
)
from ...features.delivery.options import AT_LEAST_ONCE, AT_MOST_ONCE
from ...logging import get_logger
from ...payloads import PayloadCodec, Scope, call_scope, result_scope
from ...project_code import contained
from ...retries import DEFAULT, delay_of
from ...tasks.attempt_ending import AttemptEnding
from ...tasks.definition import SteadyQueueTask
from ...tasks.durable_sleep import DurableSleep, sleep_of
from ...tasks.metadata import JobMetadata, delivery_of
from ...tasks.model_arguments import require_permitted_models
from ...tasks.notes import AttemptNotes
from ...tasks.outbox import Outbox
from ...tasks.results import task_errors, workers_of
from ...tasks.task_context import SteadyQueueTaskContext
from ...tasks.task_result import SteadyQueueTaskResult
from ...timezones import from_utc
from ..base.journal_reader import FinishedEntry
from ..base.log_context import about_job, milliseconds
from . import outcomes, unknown_tasks
from .error_text import LONGEST_MESSAGE, LONGEST_PATH, bounded, describe
from .time_limits import time_limit_of

if TYPE_CHECKING:
    from ...backend import SteadyQueueBackend

logger = get_logger("steady_queue.worker")

#: The stored form of metadata from which the last value was taken away.
EMPTY = "{}"
#: Bytes that endings and crashes may add to the metadata of a job.
MOST_ADDED = 2**20
#: Endings of an attempt after which no other one follows: the arguments, or the code, will be no
#: better the next time, nobody wants it, or nobody knows what it has done. So it is with a result
#: that cannot be stored: the work is done.
FINAL = (
    DeserializationError,
    TaskCancelled,
    TooManySnoozesError,
    TooManyCrashesError,
    TransactionEndedError,
    StepOrderError,
    Fail,
)


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
        "_call_text", "_delay", "_metadata", "_notes", "_now", "_outbox", "_task_result", "args",
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
        #: The encoded arguments, once they are taken out of their stored form.
        self._call_text = claim.arguments if backend.payload_codec is None else None
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
        # SQLite lets a row hold something other than text.
        text = str(self._opened())
        return arguments.has_references(text)

    def decode(self) -> None:
        """Decode the arguments. Raises ``DeserializationError``."""
        results = None
        if self.needs_models:
            args, kwargs = self._decode(resolve_models=False)
            permitted = self.backend.settings.argument_models
            require_permitted_models(self.task, args, kwargs, permitted)
            # Asked for only if the text refers to one.
            using = self.using or self.backend.database
            results = ParentResults(
                using, self.claim.job_id, self._require_permitted, self.metadata
            )
        self.args, self.kwargs = self._decode(resolve_models=True, result_of=results)

    def _require_permitted(self, value: Any) -> None:
        permitted = self.backend.settings.argument_models
        require_permitted_models(self.task, [value], {}, permitted)

    def decode_for_signals(self) -> None:
        """Decode the arguments without their models, or leave them empty if they are unreadable."""
        with suppress(DeserializationError):
            self.args, self.kwargs = self._decode(resolve_models=False)

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
        limit = time_limit_of(self.claim, self.task, self.backend)
        return SteadyQueueTaskContext(
            task_result=self.task_result,
            token=self.claim.token,
            outbox=self._outbox,
            deadline=from_utc(self.started_at + timedelta(seconds=limit.timeout))
            if limit
            else None,
            intended_time=self.metadata.intended_time,
            find_batch=self._find_batch if self.metadata.batch is not None else None,
            find_workflow=self._find_workflow if self.metadata.batch is not None else None,
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
        return len(str(self._opened()))

    def ending_of(self, error: BaseException | None) -> AttemptEnding:
        """Return how the attempt ends if ``error`` leaves the task; ``None``: it returns."""
        if error is None:
            return AttemptEnding.FINISHED
        if self.interpret is not None:
            try:
                error = self.interpret(error)
            except BaseException:
                return AttemptEnding.RELEASED
        error = usable(error)
        if isinstance(error, Snooze) and self._too_many_snoozes(error) is None:
            return AttemptEnding.SNOOZED
        if sleep_of(error, self.claim.job_id) is not None:
            return AttemptEnding.SNOOZED
        if isinstance(error, Discard):
            return AttemptEnding.DISCARDED
        if self._is_preempted(error):
            return AttemptEnding.RELEASED
        if isinstance(error, TaskCancelled):
            return AttemptEnding.CANCELLED
        is_last = isinstance(error, Snooze) or self.claim.attempts + 1 >= self.claim.max_attempts
        if is_last or self._retry_delay(error) is None:
            return AttemptEnding.FAILED
        return AttemptEnding.RETRIED

    def _find_batch(self) -> Batch:
        link = cast(Link, Link.of(self.metadata.batch))
        return Batch.of(link.batch_id, self.backend)

    def _find_workflow(self) -> Any:
        link = cast(Link, Link.of(self.metadata.batch))
        return workflow_of(link.batch_id, self.backend)

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
        object.__setattr__(self.task_result, "_return_value", value)
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
        outcome = outcomes.finished(
            self.claim, self.worker, entry.started_at, entry.return_value, entry.preserve
        )
        # Only the dead process knows whether it has stored one.
        sequel = (outcome.sequel or Sequel())._replace(ends_checkpoint=True, ends_steps=True)
        return self.reported(self._kept(outcome._replace(sequel=sequel)), entry.started_at)

    def reported(
        self, outcome: Outcome, ended_at: datetime, error: BaseException | None = None
    ) -> RunResult:
        """Return the result of an attempt that another process has made; ``error`` stands for the
        exception that ended it there."""
        if outcome.sequel is not None and outcome.sequel.metadata is not None:
            shown = JobMetadata.read(outcome.sequel.metadata).shown
            object.__setattr__(self.task_result, "metadata", shown)
        if outcome.sequel is not None and outcome.sequel.progress is not None:
            object.__setattr__(self.task_result, "progress", outcome.sequel.progress)
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
        object.__setattr__(self.task_result, "_return_value", value)

    def raised(self, error: BaseException, now: Callable[[], datetime]) -> RunResult:
        """Return the result of a task that raised ``error``, which may be an ending that it has
        chosen."""
        error = usable(error)
        if isinstance(error, Snooze):
            return self._snoozed(error, now())
        if (sleep := sleep_of(error, self.claim.job_id)) is not None:
            return self._slept(sleep, now())
        if isinstance(error, Discard):
            return self._discarded(error, now)
        if self._is_preempted(error):
            return self._preempted()
        return self.failed(error, now())

    def failed(self, error: BaseException, ended_at: datetime) -> RunResult:
        """Return the result of an attempt that ``error`` ended, before or while the task ran."""
        failure = describe(error)
        outcome = outcomes.unsuccessful(
            self.claim,
            self.worker,
            self.started_at,
            failure,
            lambda: self._retry_delay(error),
            ended_at,
        )
        if outcome.ending is Ending.RETRIED:
            self._log_retry(outcome, failure.exception_class, ended_at)
        self._end_unsuccessfully(outcome, ended_at)
        if outcome.ending is Ending.FAILED and (self.metadata.snoozes or self.metadata.crashes):
            # Somebody may retry the job: it starts over.
            outcome = self._with_metadata(outcome, snoozes=0, crashes=())
        outcome = self._completed(outcome)
        return RunResult(outcome, self.task_result, self.backend, error)

    def lost(self, error: BaseException, ended_at: datetime, process: str) -> RunResult:
        """Return the result of an attempt that was lost with its ``process``: no attempt is counted
        if the job is delivered at least once, but a crash."""
        if self.metadata.delivery != AT_LEAST_ONCE or self.claim.is_cancelled:
            return self.failed(error, ended_at)
        crashes = (*self.metadata.crashes, bounded(process, LONGEST_PATH))
        most = self.metadata.max_crashes or self.backend.settings.max_crashes
        if len(crashes) >= most:
            return self.failed(_poison(crashes, error), ended_at)
        failure = describe(error)
        delay = self._retry_delay(error)
        if delay is None:  # The back-off gives up, which is not for it to decide.
            delay = delay_of(DEFAULT, error, self.task_result)
        outcome = outcomes.crashed(
            self.claim, self.worker, self.started_at, failure, delay or 0.0, ended_at
        )
        self._end_unsuccessfully(outcome, ended_at)
        outcome = self._with_metadata(outcome, crashes=crashes)
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
        for name in ("started_at", "last_attempted_at"):
            object.__setattr__(self.task_result, name, began)
        self._end(TaskResultStatus.FAILED, ended_at)
        return RunResult(outcome, self.task_result, self.backend, error)

    def _is_preempted(self, error: BaseException) -> bool:
        return isinstance(error, Preempted) and self._notes is not None and self._notes.is_lost

    @property
    def _most_snoozes(self) -> int:
        own = self.metadata.max_snoozes
        return self.backend.settings.max_snoozes if own is None else own

    def _too_many_snoozes(self, snooze: Snooze) -> TooManySnoozesError | None:
        """Return the error of a job that may not snooze once more."""
        most = self._most_snoozes
        if self.metadata.delivery == AT_MOST_ONCE:
            error = TooManySnoozesError(
                "The job is to start at most once, and would start again. Let the task end "
                "otherwise, or choose another delivery."
            )
        elif self.metadata.snoozes + 1 > most:
            times = "once" if most == 1 else f"{most} times"
            error = TooManySnoozesError(
                f"The job has snoozed {times}, as often as it may, and would do so again. Raise "
                "max_snoozes, or let the task end otherwise."
            )
        else:
            return None
        error.__cause__ = snooze
        return error

    def _snoozed(self, snooze: Snooze, ended_at: datetime) -> RunResult:
        if (error := self._too_many_snoozes(snooze)) is not None:
            return self.failed(error, ended_at)
        snoozes, most = self.metadata.snoozes + 1, self._most_snoozes
        outcome = outcomes.snoozed(self.claim, self.started_at, snooze.delay)
        logger.info(
            "Task id=%s path=%s snoozes for %.1f s (%d of %d)",
            self.claim.job_id,
            self.claim.task_path,
            snooze.delay,
            snoozes,
            most,
            extra=about_job(
                "task.snoozed",
                self.claim,
                status=outcome.ending.value,
                delay_ms=round(snooze.delay * 1000),
                duration_ms=milliseconds(self.started_at, ended_at),
            ),
        )
        return RunResult(self._noted(self._with_metadata(outcome, snoozes=snoozes)))

    def _slept(self, sleep: DurableSleep, ended_at: datetime) -> RunResult:
        """Return the result of an attempt that the next one goes on with. It is no snooze: nothing
        bounds how many there are."""
        logger.info(
            "Task id=%s path=%s sleeps for %.1f s",
            self.claim.job_id,
            self.claim.task_path,
            sleep.delay,
            extra=about_job(
                "task.sleeps",
                self.claim,
                status=Ending.RETRIED.value,
                delay_ms=round(sleep.delay * 1000),
                duration_ms=milliseconds(self.started_at, ended_at),
            ),
        )
        return RunResult(self._noted(outcomes.snoozed(self.claim, self.started_at, sleep.delay)))

    def _preempted(self) -> RunResult:
        """Return the result of an attempt that has lost its claim: nothing of it will be stored."""
        logger.info(
            "Task id=%s path=%s stops: it has lost its claim",
            self.claim.job_id,
            self.claim.task_path,
            extra=about_job("task.preempted", self.claim),
        )
        return RunResult(outcomes.released(self.claim))

    def _discarded(self, discard: Discard, now: Callable[[], datetime]) -> RunResult:
        reason = bounded(discard.reason, LONGEST_MESSAGE)
        self._outbox = None  # It was left by an attempt that has raised something.
        done = self.succeeded(None, now)
        outcome = self._with_metadata(done.outcome, discarded=reason)
        object.__setattr__(self.task_result, "metadata", self.metadata.shown)
        logger.info(
            "Task id=%s path=%s has discarded its job: %s",
            self.claim.job_id,
            self.claim.task_path,
            reason,
            extra=about_job("task.discarded", self.claim, status=outcome.ending.value),
        )
        return done._replace(outcome=outcome)

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
            object.__setattr__(self._task_result, "progress", self._notes.latest)
        return self._notes.added_to(outcome)

    def _decode(
        self, *, resolve_models: bool, result_of: ParentResults | None = None
    ) -> tuple[list[Any], dict[str, Any]]:
        return arguments.decode_call(
            self._opened(),
            resolve_models=resolve_models,
            limits=self.backend.payload_limits,
            result_of=result_of,
        )

    def _opened(self) -> str:
        """Return the encoded arguments. Raises ``PayloadError``."""
        if self._call_text is None:
            codec = cast(PayloadCodec, self.backend.payload_codec)
            scope = call_scope(self.claim, self.claim.concurrency_key)
            self._call_text = codec.open(self.claim.arguments, scope)
        return self._call_text

    def _result_scope(self) -> Scope:
        return result_scope(self.claim, self.claim.job_id)

    def _retry_delay(self, error: BaseException) -> float | None:
        """Return the seconds until the next attempt; ``None``: there is none."""
        # Middleware and the outcome have to agree, also if the back-off is random.
        if self._delay is None or self._delay[0] is not error:
            self._delay = error, self._new_delay(error)
        return self._delay[1]

    def _new_delay(self, error: BaseException) -> float | None:
        if isinstance(error, FINAL) or self.metadata.delivery == AT_MOST_ONCE:
            return None
        if isinstance(error, TaskArgumentError) and error.is_of_result:
            return None
        if isinstance(error, Retry) and error.delay is not None:
            return error.delay
        backoff = None
        if isinstance(self.task, SteadyQueueTask):
            backoff = self.task.backoff
        try:
            backoff = backoff or self.backend.settings.resolve_backoff()
            return delay_of(backoff, error, self.task_result)
        except (ConfigurationError, ValueError):
            logger.exception(
                "The back-off of task %s failed: no retry",
                self.claim.task_path,
                extra=about_job("task.backoff_failed", self.claim),
            )
            return None

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
            object.__setattr__(self.task_result, "status", TaskResultStatus.READY)
        else:
            self._end(TaskResultStatus.FAILED, ended_at)

    def _end(self, status: TaskResultStatus, ended_at: datetime) -> None:
        object.__setattr__(self.task_result, "status", status)
        object.__setattr__(self.task_result, "finished_at", from_utc(ended_at))


def _poison(crashes: Sequence[str], error: BaseException) -> TooManyCrashesError:
    """Return the error of a job that has taken these processes along, the last one by ``error``."""
    times = "once" if len(crashes) == 1 else f"{len(crashes)} times"
    poison = TooManyCrashesError(
        f"The job was running {times} when its process ended, as often as it may: "
        f"{'; '.join(crashes)}."
    )
    poison.__cause__ = error
    return poison
