"""How an attempt at a job ends: the outcome to store, and the result to tell of."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import arguments
from ...arguments import TaskArgumentError
from ...compat import TaskResult, TaskResultStatus
from ...dialects import ClaimedJob, Ending, Outcome, Sequel
from ...errors import CANCELLED_BEFORE_START, TaskCancelled
from ...features.at_work import FORGOTTEN, meaning_of_loss
from ...features.attempt_ending import AttemptEnding
from ...features.meaning import Meaning
from ...payloads import Scope, result_scope
from ...project_code import contained
from ...retries import DEFAULT, delay_of
from ...tasks.metadata import JobMetadata
from ...tasks.results import task_errors, task_of
from ...tasks.task_result import evolve
from ...timezones import from_utc
from ..base.journal_reader import FinishedEntry
from ..base.log_context import milliseconds
from . import outcomes
from .attempt_log import log_meaning, log_retry
from .error_text import describe
from .running_attempt import RunningAttempt

if TYPE_CHECKING:
    from ...backend import SteadyQueueBackend

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


class Attempt(RunningAttempt):
    """An attempt, and the results that it may end with."""

    __slots__ = ()

    @classmethod
    def for_result(
        cls, claim: ClaimedJob, backend: SteadyQueueBackend, worker: str, started_at: datetime
    ) -> Attempt:
        """Return an attempt for its result alone: its task need not be known."""
        task = task_of(claim.task_path, claim.backend_name, claim.queue_name, claim.rank)
        return cls(claim, task, backend, worker, started_at)

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
            log_meaning(self.claim, meaning)
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
            log_retry(self.claim, outcome, failure.exception_class, self.started_at, ended_at)
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
    def _has_to_forget(self) -> bool:
        if self.claim.metadata is None:
            return False
        return any(getattr(self.metadata, name) != value for name, value in FORGOTTEN.items())

    def _put_off(self, meaning: Meaning, ended_at: datetime) -> RunResult:
        """Return the result of an attempt that another one follows, and that is not counted."""
        delay = meaning.delay or 0.0
        outcome = outcomes.snoozed(self.claim, self.started_at, delay)
        log_meaning(
            self.claim,
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
        log_meaning(self.claim, meaning, status=outcome.ending.value)
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
            evolve(self._task_result, progress=self._notes.latest)
        return self._notes.added_to(outcome)

    def _result_scope(self) -> Scope:
        return result_scope(self.claim, self.claim.job_id)

    def _end_unsuccessfully(self, outcome: Outcome, ended_at: datetime) -> None:
        self.task_result.errors[:] = task_errors(outcome.errors)
        if outcome.ending is Ending.RETRIED:
            evolve(self.task_result, status=TaskResultStatus.READY)
        else:
            self._end(TaskResultStatus.FAILED, ended_at)

    def _end(self, status: TaskResultStatus, ended_at: datetime) -> None:
        evolve(self.task_result, status=status, finished_at=from_utc(ended_at))
