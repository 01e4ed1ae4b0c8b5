"""Helpers of all cases: making jobs, and the operations by short names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from itertools import count
from time import monotonic, sleep
from typing import Any, TypeVar
from unittest import SkipTest

from django.db import DatabaseError

from ..dialects import Limit, portable
from ..dialects.dialect import Dialect
from ..dialects.outcome import Ending, Outcome
from ..dialects.queue_selector import QueueSelector
from ..dialects.records import ClaimedJob, EnqueuedJob, NewJob, ProcessIdentity
from ..dialects.registry import dialect_for
from . import threads
from .inspection import InspectingCase

T = TypeVar("T")

FINGERPRINT = "0123456789abcdef"


def new_job(queue_name: str = "default", **fields: Any) -> NewJob:
    """Return a job to enqueue, with defaults for everything else."""
    defaults: dict[str, Any] = {
        "rank": 0,
        "task_path": "conformance.tasks.work",
        "backend_name": "default",
        "arguments": "{}",
    }
    return NewJob(queue_name=queue_name, **(defaults | fields))


def limited_job(key: str = "key", to: int = 1, **fields: Any) -> NewJob:
    """Return a job with a limit to enqueue."""
    duration = fields.pop("duration", timedelta(minutes=3))
    discards = fields.pop("discards", False)
    limit = Limit(key=key, to=to, duration=duration, discards=discards)
    return new_job(limit=limit, **fields)


def stored_id(new: EnqueuedJob) -> int:
    """Return the id of a job that was not discarded."""
    assert new.job_id is not None, "the job was discarded"
    return new.job_id


def ending(ending: Ending, claim: ClaimedJob, **fields: Any) -> Outcome:
    """Return an outcome that matches ``claim``."""
    outcome = Outcome(ending, claim.job_id, claim.token, claim.queue_name, claim.rank)
    known = {
        "concurrency_key": claim.concurrency_key,
        "unique_key": claim.unique_key,
        "link": claim.link,
    }
    return outcome._replace(**(known | fields))


class ConformanceCase(InspectingCase):
    """A case on the database under test, with short names for the operations."""

    #: Seconds to wait for a condition before a case fails.
    patience = 30.0

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        # A dialect may change the database itself: before any case holds locks in it.
        threads.run_all(cls.using, [lambda: None], cls.patience)

    def setUp(self) -> None:
        super().setUp()
        self._names: dict[int, str] = {}
        self._numbers = count()
        self.followers = set()
        # Ids start over in emptied tables: anything remembered about earlier jobs is wrong.
        for name in ("scan_position", "bookmarks", "claimers", "locked_jobs", "held_up"):
            vars(self.connection).pop(f"steady_queue_{name}", None)

    def tearDown(self) -> None:
        self.check_states()
        super().tearDown()

    @property
    def dialect(self) -> Dialect:
        return dialect_for(self.using)

    # --- operations

    def enqueue(self, *jobs: NewJob) -> list[int]:
        """Enqueue ``jobs``, none of which may be discarded; return their ids."""
        return [stored_id(new) for new in self.dialect.enqueue(self.connection, jobs)]

    def enqueue_one(self, job: NewJob) -> tuple[int, datetime]:
        """Enqueue ``job``; return its id and the time."""
        [new] = self.dialect.enqueue(self.connection, [job])
        return stored_id(new), new.enqueued_at

    def enqueue_many(self, count: int, queue_name: str = "default") -> list[int]:
        return self.enqueue(*[new_job(queue_name) for _ in range(count)])

    def register(self, name: str = "worker") -> int:
        """Insert the row of a process; return its id."""
        present = self.stored(self.present())
        number = next(self._numbers)
        process = self.rows("Process").create(
            kind="Worker", name=f"{name}-{number}", pid=1, hostname="conformance",
            created_at=present, last_heartbeat_at=present,
        )  # fmt: skip
        self._names[process.pk] = process.name
        return int(process.pk)

    def identity(self, process_id: int) -> ProcessIdentity:
        """Return the identity of a process that was registered with ``register``."""
        return ProcessIdentity(process_id, self._names[process_id])

    def claim(
        self, limit: int = 1000, *patterns: str, process_id: int | None = None
    ) -> list[ClaimedJob]:
        """Claim from all queues, or from ``patterns``, for a new process or the given one."""
        if process_id is None:
            process_id = self.register()
        selector = QueueSelector.of(patterns)
        return self.dialect.claim(self.connection, self.identity(process_id), selector, limit)

    def claimed_job(self, *jobs: NewJob) -> ClaimedJob:
        """Enqueue one job and claim it."""
        [job_id] = self.enqueue(*(jobs or [new_job()]))
        [claim] = [found for found in self.claim() if found.job_id == job_id]
        return claim

    def settle(self, *outcomes: Outcome) -> set[int]:
        return self.dialect.settle(self.connection, outcomes)

    def settle_and_claim(
        self, *outcomes: Outcome, process_id: int, limit: int = 5, patterns: Sequence[str] = ("*",)
    ) -> tuple[set[int], list[ClaimedJob]]:
        """Settle, and claim from all queues, or from ``patterns``, in one operation."""
        process, selector = self.identity(process_id), QueueSelector(patterns=tuple(patterns))
        return self.dialect.settle_and_claim(self.connection, outcomes, process, selector, limit)

    def claim_followers(
        self, holders: Sequence[ClaimedJob], process_id: int, limit: int = 10
    ) -> list[ClaimedJob]:
        """Claim the jobs that follow ``holders``; skip the case if the dialect claims none."""
        if not self.dialect.claims_followers:
            raise SkipTest("this dialect claims no followers")
        process = self.identity(process_id)
        claims = self.dialect.claim_followers(self.connection, process, holders, limit)
        self.followers.update(claim.job_id for claim in claims)
        return claims

    def finished(self, claim: ClaimedJob, **fields: Any) -> Outcome:
        return ending(Ending.FINISHED, claim, **({"attempts": 1, "return_value": "1"} | fields))

    def failed(self, claim: ClaimedJob, **fields: Any) -> Outcome:
        error = {
            "attempts": 1, "exception_class": "builtins.ValueError", "message": "no",
            "fingerprint": FINGERPRINT,
        }  # fmt: skip
        return ending(Ending.FAILED, claim, **(error | fields))

    def pause(self, *queue_names: str) -> None:
        present = self.stored(self.present())
        for name in queue_names:
            self.rows("Pause").create(queue_name=name, created_at=present)

    def make_due(self, job_id: int, seconds_ago: float = 60) -> datetime:
        """Make a scheduled job overdue; return its new due time."""
        due = self.present() - timedelta(seconds=seconds_ago)
        self.rows("ScheduledExecution").filter(pk=job_id).update(due_at=self.stored(due))
        return due

    def present(self) -> datetime:
        """Return the database's present time."""
        return self.dialect.current_time(self.connection)

    def stored(self, instant: datetime) -> datetime:
        """Return a time in the form that the models take."""
        return portable.storable(instant)

    def aware(self, value: datetime) -> datetime:
        """Return a time from a model as aware, in UTC."""
        return portable.aware(value)

    # --- other threads

    def elsewhere(self, function: Callable[[], T]) -> T:
        """Run ``function`` in another thread, and therefore on another connection."""
        return threads.run_all(self.using, [function], self.patience)[0]

    def in_threads(self, functions: Sequence[Callable[[], T]]) -> list[T]:
        """Run each function in a thread of its own; return their results."""
        return threads.run_all(self.using, functions, self.patience)

    def begin(self, function: Callable[[], T]) -> Future[T]:
        """Start ``function`` in another thread."""
        return threads.start(self.using, function)

    def again(self, operation: Callable[[], T]) -> T:
        """Retry ``operation`` after contention, as the core does."""
        deadline = monotonic() + self.patience
        while True:
            try:
                return operation()
            except DatabaseError as error:
                if monotonic() > deadline or not self.dialect.is_contention(self.connection, error):
                    raise

    def holding(self, work: Callable[[], Any]) -> Any:
        """Run ``work`` in a transaction of another thread that stays open; see ``threads``."""
        return threads.holding(self.using, work, self.patience)

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until ``condition`` holds."""
        deadline = monotonic() + self.patience
        while not condition():
            self.assertLess(monotonic(), deadline, f"waited {self.patience} s for: {what}")
            sleep(0.005)

    def until_deadline(self) -> Iterator[int]:
        """Yield the numbers of tries; fail when they take too long."""
        deadline = monotonic() + self.patience
        for number in count():
            self.assertLess(monotonic(), deadline, f"not done after {self.patience} s")
            yield number

    def assert_between(self, earliest: datetime, value: datetime, latest: datetime) -> None:
        self.assertLessEqual(earliest, value)
        self.assertLessEqual(value, latest)
