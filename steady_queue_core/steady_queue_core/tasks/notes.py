"""What an attempt stores for its job while it runs: its checkpoint, its progress and its steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from threading import Lock
from typing import Any, Protocol

from django.db import Error

from ..dialects import CheckpointChange, ClaimedJob, Ending, Outcome, Sequel, StepRecord
from ..errors import CheckpointRefusedError
from ..features.delivery.options import TRANSACTIONAL
from ..logging import about, get_logger
from ..payloads import checkpoint_scope
from ..progress import Progress
from .attempt_payloads import AttemptPayloads
from .claim_hold import ClaimHold
from .running_steps import RunningSteps
from .steps import AttemptSteps, StepStore

logger = get_logger("steady_queue.worker")

#: Seconds between two progresses of an attempt that are stored while it runs.
INTERVAL = 1.0

NOTHING = object()
REFUSED = (
    "A task that is delivered transactionally cannot store a checkpoint: if it does not come to "
    "its end, everything that it has written is rolled back, the checkpoint as well. Leave it out, "
    "or choose another delivery."
)


class Store(StepStore, Protocol):
    """Where checkpoints and steps are kept."""

    def save(self, change: CheckpointChange, /) -> bool:
        """Store a change unless the claim is lost; return whether it is held."""

    def load(self, job_id: int, /) -> tuple[int, Any] | None:
        """Return the token and the encoded checkpoint of a job, if it has a row."""

    def is_held(self, job_id: int, token: int, /) -> bool:
        """Return whether a claim is held."""


class AttemptNotes:
    """The checkpoint, the progress and the steps of one attempt. Any thread of the task may use
    them."""

    def __init__(
        self,
        claim: ClaimedJob,
        backend: Any,
        using: str | None = None,
        *,
        now: Callable[[], datetime],
        delivery: str | None = None,
    ) -> None:
        self._claim, self._backend, self._using = claim, backend, using
        self._delivery, self._now = delivery, now
        self._hold, self._payloads = ClaimHold(claim), AttemptPayloads(backend)
        self._steps: AttemptSteps | None = None
        #: What was told last.
        self.latest: Progress | None = None
        self._lock = Lock()
        #: The progress that is not stored for sure, and when the next one may be.
        self._pending: Progress | None = None
        self._next_at = 0.0
        #: Whether this attempt has found or stored a checkpoint, and whether anything.
        self._is_used = self._has_row = False
        #: The encoded checkpoint; ``NOTHING``: nobody has looked.
        self._text: Any = NOTHING if self.may_have_checkpoint else None
        self._value: Any = None if self._text is None else NOTHING
        #: Whether the last one may be rolled back.
        self._is_uncommitted = False

    @cached_property
    def _store(self) -> Store:
        store: Store = self._backend.checkpoints(self._using)
        return store

    @property
    def steps(self) -> AttemptSteps:
        """The steps of the attempt."""
        with self._lock:
            if self._steps is None:
                self._steps = AttemptSteps(
                    self._hold, self._backend, lambda: self._store, self._now, self._delivery
                )
            return self._steps

    @property
    def running_steps(self) -> RunningSteps | None:
        """The steps that are being taken, if the attempt has any."""
        return None if self._steps is None else self._steps.running

    @property
    def is_lost(self) -> bool:
        """Whether the claim is known to be lost."""
        return self._hold.is_lost

    @property
    def may_have_checkpoint(self) -> bool:
        """Whether an attempt before this one may have stored something."""
        return not self._claim.is_first

    @property
    def awaits_look(self) -> bool:
        """Whether there may be a checkpoint that nobody has looked up."""
        return self._text is NOTHING

    @property
    def checkpointed(self) -> Any:
        """The value of the last checkpoint; ``None`` without one.

        Raises ``Preempted`` if a later attempt has stored it, and ``DeserializationError``.
        """
        if self._value is not NOTHING:
            return self._value
        text = self.load()
        value = None if text is None else self._decoded(text)
        if self._text is not NOTHING:
            self._value = value
        return value

    def load(self) -> Any:
        """Return the stored form of the checkpoint, which is read unless it is known."""
        if self._text is not NOTHING:
            return self._text
        found = self._store.load(self._claim.job_id)
        if found is not None:
            self._hold.require_latest(found[0])
        self._is_used = self._is_used or found is not None
        text = None if found is None else found[1]
        self._is_uncommitted = self._is_uncommitted and self._store.is_in_transaction
        if not self._is_uncommitted:
            self._text = text
        return text

    def checkpoint(self, data: Any) -> None:
        """Store ``data``. Raises ``TaskArgumentError``, ``Preempted``, ``CheckpointRefusedError``
        and errors of the database."""
        if self._delivery == TRANSACTIONAL:
            raise CheckpointRefusedError(REFUSED)
        text = self._payloads.seal(self._payloads.encode(data, "checkpoint"), self._scope)
        with self._lock:
            self._hold.require()
            self._has_row = self._is_used = True
            pending = self._pending
        # Until it is committed nobody knows which one is stored.
        self._text = self._value = NOTHING
        self._is_uncommitted = self._store.is_in_transaction
        self._save(data=text, progress=pending)
        if not self._is_uncommitted:
            self._text = text
            self._note_stored(pending)

    def progress(self, done: float, total: float | None, text: str) -> None:
        """Tell how far the task has come; what cannot be stored now is stored with the outcome.
        Raises ``TypeError``, ``ValueError`` and ``Preempted``."""
        told = Progress.checked(done, total, text)
        with self._lock:
            self._hold.require()
            self.latest = self._pending = told
            if time.monotonic() < self._next_at or self._store.is_in_transaction:
                return
            self._has_row = True
            # Before: while the database is away, it is asked no more often.
            self._next_at = time.monotonic() + INTERVAL
        try:
            self._save(progress=told)
        except (Error, UnicodeError):
            logger.info(
                "The progress of job %d could not be stored; it will be tried again",
                self._claim.job_id,
                exc_info=True,
                extra=about(
                    "task.progress_not_stored",
                    task_id=str(self._claim.job_id),
                    queue=self._claim.queue_name,
                ),
            )
        else:
            self._note_stored(told)

    def is_held(self) -> bool:
        """Ask the database whether the claim is held."""
        if not self.is_lost:
            held = self._store.is_held(self._claim.job_id, self._claim.token)
            self._hold.is_lost = not held
        return not self.is_lost

    def added_to(self, outcome: Outcome) -> Outcome:
        """Return the outcome of the attempt with the progress and the sleeps that are not stored
        yet. Nothing is stored from now on."""
        # What has begun before is either stored before the outcome, or finds its claim gone.
        with self._lock:
            self._hold.is_closed = True
            progress, ends = self._pending, False
        if outcome.ending is Ending.FINISHED:
            ends = self._is_used
        if outcome.deletes_job:
            progress, ends = None, ends or self._has_row or self.may_have_checkpoint
        sleeps, ends_steps = self._end_of_steps(outcome)
        if progress is None and not ends and not sleeps and not ends_steps:
            return outcome
        sequel = (outcome.sequel or Sequel(is_implied=True))._replace(
            progress=progress, ends_checkpoint=ends, sleeps=sleeps, ends_steps=ends_steps
        )
        return outcome._replace(sequel=sequel)

    def _end_of_steps(self, outcome: Outcome) -> tuple[tuple[StepRecord, ...], bool]:
        """Return the sleeps to store with the outcome, and whether it deletes steps."""
        if self._steps is None:
            return (), False
        sleeps = () if outcome.ending is Ending.FINISHED else self._steps.begun_sleeps
        return sleeps, outcome.deletes_job and self._steps.are_used

    @property
    def _scope(self) -> Any:
        return checkpoint_scope(self._claim, self._claim.job_id)

    def _save(self, **changes: Any) -> None:
        # Not under the lock: another thread of the task may be in a transaction that has locked the
        # row.
        change = CheckpointChange(self._claim.job_id, self._claim.token, **changes)
        if not self._store.save(change):
            raise self._hold.lost()

    def _note_stored(self, progress: Progress | None) -> None:
        with self._lock:
            if progress is not None and self._pending is progress:
                self._pending = None
                self._next_at = time.monotonic() + INTERVAL

    def _decoded(self, stored: Any) -> Any:
        return self._payloads.decode(self._payloads.open(stored, self._scope), "checkpoint")
