"""What an attempt stores for its job while it runs: its checkpoint and its progress."""

from __future__ import annotations

import time
from functools import cached_property
from threading import Lock
from typing import Any, Protocol

from django.db import InterfaceError, OperationalError

from .. import arguments
from ..arguments import DeserializationError, TaskArgumentError
from ..dialects import CheckpointChange, ClaimedJob, Ending, Outcome, Sequel
from ..errors import CheckpointRefusedError, Preempted
from ..logging import about, get_logger
from ..payloads import checkpoint_scope
from ..progress import Progress

logger = get_logger("steady_queue.worker")

#: Seconds between two progresses of an attempt that are stored while it runs.
INTERVAL = 1.0

NOTHING = object()
REFUSED = (
    "A task that is delivered transactionally cannot store a checkpoint: if it does not come to "
    "its end, everything that it has written is rolled back, the checkpoint as well. Leave it out, "
    "or choose another delivery."
)


class Store(Protocol):
    """Where checkpoints are kept."""

    @property
    def is_in_transaction(self) -> bool:
        """Whether nobody else sees what is saved now, until the task commits it."""

    def save(self, change: CheckpointChange, /) -> bool:
        """Store a change unless the claim is lost; return whether it is held."""

    def load(self, job_id: int, /) -> tuple[int, Any] | None:
        """Return the token and the encoded checkpoint of a job, if it has a row."""

    def is_held(self, job_id: int, token: int, /) -> bool:
        """Return whether a claim is held."""


class AttemptNotes:
    """The checkpoint and the progress of one attempt. Any thread of the task may use them."""

    def __init__(
        self,
        claim: ClaimedJob,
        backend: Any,
        using: str | None = None,
        *,
        transactional: bool = False,
    ) -> None:
        self._claim, self._backend, self._using = claim, backend, using
        self._transactional = transactional
        #: Whether the claim is known to be lost. A lost claim never comes back.
        self.is_lost = False
        #: What was told last.
        self.latest: Progress | None = None
        self._lock = Lock()
        #: The progress that is not stored for sure, and when the next one may be.
        self._pending: Progress | None = None
        self._next_at = 0.0
        self._is_closed = False
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
    def may_have_checkpoint(self) -> bool:
        """Whether an attempt before this one may have stored something."""
        return not self._claim.is_first

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
        if found is not None and isinstance(found[0], int) and found[0] > self._claim.token:
            raise self._lost()
        self._is_used = self._is_used or found is not None
        text = None if found is None else found[1]
        self._is_uncommitted = self._is_uncommitted and self._store.is_in_transaction
        if not self._is_uncommitted:
            self._text = text
        return text

    def checkpoint(self, data: Any) -> None:
        """Store ``data``. Raises ``TaskArgumentError``, ``Preempted``, ``CheckpointRefusedError``
        and errors of the database."""
        if self._transactional:
            raise CheckpointRefusedError(REFUSED)
        text = arguments.encode(data, limits=self._backend.payload_limits, root="checkpoint")
        if arguments.has_models(text):
            raise TaskArgumentError(
                "checkpoint cannot be stored: there is a model instance in it. Pass its primary "
                "key."
            )
        codec = self._backend.payload_codec
        if codec is not None:
            text = codec.seal(text, self._scope)
        with self._lock:
            self._require_claim()
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
        """Tell how far the task has come. Raises ``TypeError``, ``ValueError``, ``Preempted``, and
        errors of the database unless it is away."""
        told = Progress.checked(done, total, text)
        with self._lock:
            self._require_claim()
            self.latest = self._pending = told
            if time.monotonic() < self._next_at or self._store.is_in_transaction:
                return
            self._has_row = True
            # Before: while the database is away, it is asked no more often.
            self._next_at = time.monotonic() + INTERVAL
        try:
            self._save(progress=told)
        except (OperationalError, InterfaceError):
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
            self.is_lost = not held
        return not self.is_lost

    def added_to(self, outcome: Outcome) -> Outcome:
        """Return the outcome of the attempt with the progress that is not stored yet. Nothing is
        stored from now on."""
        # What has begun before is either stored before the outcome, or finds its claim gone.
        with self._lock:
            self._is_closed = True
            progress, ends = self._pending, False
        if outcome.ending is Ending.FINISHED:
            ends = self._is_used
        if outcome.deletes_job:
            progress, ends = None, ends or self._has_row or self.may_have_checkpoint
        if progress is None and not ends:
            return outcome
        sequel = outcome.sequel or Sequel(is_implied=True)
        return outcome._replace(sequel=sequel._replace(progress=progress, ends_checkpoint=ends))

    @property
    def _scope(self) -> Any:
        return checkpoint_scope(self._claim, self._claim.job_id)

    def _save(self, **changes: Any) -> None:
        # Not under the lock: another thread of the task may be in a transaction that has locked the
        # row.
        change = CheckpointChange(self._claim.job_id, self._claim.token, **changes)
        if not self._store.save(change):
            raise self._lost()

    def _note_stored(self, progress: Progress | None) -> None:
        with self._lock:
            if progress is not None and self._pending is progress:
                self._pending = None
                self._next_at = time.monotonic() + INTERVAL

    def _require_claim(self) -> None:
        if self._is_closed:
            raise Preempted("The task has ended: nothing more is stored for its job.")
        if self.is_lost:
            raise self._lost()

    def _lost(self) -> Preempted:
        self.is_lost = True
        return Preempted(
            f"This attempt has lost its claim of job {self._claim.job_id}, which runs elsewhere or "
            "has ended: the task is to stop."
        )

    def _decoded(self, stored: Any) -> Any:
        backend = self._backend
        codec = backend.payload_codec
        text = str(stored) if codec is None else codec.open(stored, self._scope)
        if arguments.has_models(text):
            raise DeserializationError("The stored checkpoint refers to a model instance.")
        return arguments.decode(text, resolve_models=False, limits=backend.payload_limits)
