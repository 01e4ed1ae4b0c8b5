"""The values that pass between the core and a dialect. All times are aware and in UTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from ..features.batches.link import Link
from ..features.concurrency.stored import Limit
from ..features.rates.stored import JobRate
from ..features.unique.key import JobKey


# Not frozen: that would make it twice as expensive to create, and each enqueue creates some.
@dataclass(slots=True, kw_only=True)
class NewJob:
    """A job to insert, with the facts that decide its first execution."""

    queue_name: str
    #: Negated priority: smaller ranks come first.
    rank: int
    task_path: str
    backend_name: str
    #: The encoded call, ready to be stored as text.
    arguments: str
    max_attempts: int = 1
    #: The time when it is due; it is ready at once if that is past or ``None``.
    run_at: datetime | None = None
    #: The time until it is due, counted from the database's present time. Excludes ``run_at``.
    delay: timedelta | None = None
    limit: Limit | None = None
    #: What is stored of the call beyond the columns: a JSON object as text.
    metadata: str | None = None
    #: The batch that it is a member of; the facade sees to it, not the dialect.
    batch_id: int | None = None
    #: Whether the job has no execution at first, no permit, and no due time: the facade inserts the
    #: row that says what it waits for. A dialect inserts the row of the job alone.
    waits: bool = False
    #: The key among which a fair queue shares its workers, ``""`` for a job without one; ``None``:
    #: the queue is not fair. It is in the metadata, too.
    fair_key: str | None = None


class EnqueuedJob(NamedTuple):
    """The result of inserting a job."""

    #: ``None`` if it was discarded because it found no permit.
    job_id: int | None
    enqueued_at: datetime
    #: Whether it is another job, which has the unique key of this one; the facade says so.
    is_duplicate: bool = False

    @property
    def is_new(self) -> bool:
        """Whether a job was stored."""
        return self.job_id is not None and not self.is_duplicate


class Refused(Exception):
    """Jobs were not to be enqueued. Nothing was stored."""


class ProcessIdentity(NamedTuple):
    """A process. Names never repeat; a database that was restored may assign the same ids again."""

    id: int
    name: str


#: Converts a stored time to an aware one, or returns the second argument for what is none.
Reader = Callable[[Any, datetime], datetime]


class ClaimedJob(NamedTuple):
    """A job claimed by a process, with everything needed to run it."""

    job_id: int
    #: The fencing token: it grows with each claim of the job; see ``portable.next_token``.
    token: int
    queue_name: str
    rank: int
    task_path: str
    backend_name: str
    arguments: str
    #: Attempts that ended before this claim.
    attempts: int
    #: Negative if the job was asked to end: no attempt starts.
    max_attempts: int
    #: JSON list of the workers of earlier attempts, or ``None``.
    worker_ids: str | None
    #: JSON list of ``[exception path, traceback]`` of earlier attempts, or ``None``.
    errors: str | None
    enqueued_at: datetime
    #: When the first attempt started, if there was one.
    started_at: datetime | None
    claimed_at: datetime
    #: The key of the permit that the job holds; ``None`` for a job without a limit.
    concurrency_key: str | None = None
    #: The metadata of the job, as text; ``None`` for most jobs.
    metadata: str | None = None
    #: The job of the same key after whose end this one may start. It holds no permit until then.
    follows: int | None = None

    @property
    def is_cancelled(self) -> bool:
        """Whether the job was asked to end before it was claimed."""
        return self.max_attempts < 0

    @property
    def is_first(self) -> bool:
        """Whether the job was never claimed before: by the count in the token. For tokens that do
        not count it is false."""
        return self.token >> 32 == 1

    @property
    def was_released(self) -> bool:
        """Whether the job was claimed before and has never started, by the count in the token. For
        tokens that do not count it is false."""
        return 1 < self.token >> 32 < 2**16 and self.started_at is None

    @property
    def unique_key(self) -> JobKey | None:
        """The unique key of the job, read from its metadata; ``None`` for most jobs."""
        return None if self.metadata is None else JobKey.read(self.metadata)

    @property
    def has_rate(self) -> bool:
        """Whether the job has to ask before it starts, because its key has a rate limit."""
        return self.metadata is not None and JobRate.read(self.metadata) is not None

    @property
    def link(self) -> Link | None:
        """What the job has to do with a batch, read from its metadata; ``None`` for most jobs."""
        return None if self.metadata is None else Link.read(self.metadata)

    @property
    def ends_key_at_start(self) -> bool:
        """Whether the job has a unique key that is to be freed before it starts."""
        key = self.unique_key
        return key is not None and key.ends_at_start

    @classmethod
    def from_row(
        cls, row: Mapping[str, Any], claimed_at: datetime, read_time: Reader
    ) -> ClaimedJob:
        """Build a claim from a row that has ``CLAIM_COLUMNS``, by name.

        ``read_time(value, default)`` converts a stored time to an aware one; it may return
        ``default``, the time of the claim, for a value that cannot be read.
        """
        return cls.from_values([row[name] for name in CLAIM_COLUMNS], claimed_at, read_time)

    @classmethod
    def from_values(
        cls, values: Sequence[Any], claimed_at: datetime, read_time: Reader
    ) -> ClaimedJob:
        """Build a claim from the values of ``CLAIM_COLUMNS``, in their order."""
        *others, enqueued_at, started_at, concurrency_key, metadata = values
        enqueued = read_time(enqueued_at, claimed_at)
        started = None if started_at is None else read_time(started_at, claimed_at)
        return cls._make((*others, enqueued, started, claimed_at, concurrency_key, metadata, None))


#: The columns of a claim that its execution row (ready or claimed) has, under the same names.
EXECUTION_COLUMNS = ("job_id", "token", "queue_name", "rank")
#: The columns of a claim that the row of its job has.
JOB_COLUMNS = (
    "task_path",
    "backend_name",
    "arguments",
    "attempts",
    "max_attempts",
    "worker_ids",
    "errors",
    "enqueued_at",
    "started_at",
    "concurrency_key",
    "metadata",
)
#: Everything a claim is read from, apart from the time of the claim.
CLAIM_COLUMNS = EXECUTION_COLUMNS + JOB_COLUMNS


class Level(NamedTuple):
    """The jobs of one rank in a queue, which share on their own."""

    queue_name: str
    rank: int


#: A key of a fair queue: its level, and its text.
TurnKey = tuple[Level, str]


class TurnRow(NamedTuple):
    """The row of a key of a fair queue."""

    id: int
    #: The next turn of the key.
    turn: float


class Arrival(NamedTuple):
    """A job of a fair queue that has just become ready."""

    job_id: int
    queue_name: str
    rank: int
    #: The key among which the queue shares its workers.
    key: str
    #: The weight of the key, unless it has one of its own.
    default_weight: float


class Dispatched(NamedTuple):
    """The result of moving due jobs to ready."""

    moved: int
    #: Seconds until the next scheduled job is due, or ``None`` if there is none.
    next_due_in: float | None


class Wakeup(Protocol):
    """A listener for new work. Wake-ups may be spurious or lost, so workers poll as well."""

    @property
    def in_order(self) -> bool:
        """Whether it is listening now: workers poll less often while it is."""

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when there may be new work."""

    def clear(self) -> None:
        """Consume the wake-ups so far; never blocks."""

    def close(self) -> None:
        """Stop listening, and close the descriptor."""


#: The version of the contract, which a plugin states in its ``DialectInfo``.
API_VERSION = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DialectInfo:
    """Facts about a dialect, which the core uses instead of a vendor's name."""

    #: Must equal the name of the plugin's entry point.
    name: str
    #: The display name of the product, such as ``"SQLite 3.40.1"``.
    display_name: str
    #: The version of the contract for which the plugin was written; those that do not state it were
    #: written for the first one.
    api_version: int = 1
    #: Whether a second worker skips rows that a first one has locked, rather than waiting.
    skips_locked: bool = True
    #: Whether ``steady_queue_wakeup`` returns a listener.
    has_wakeup: bool = False
    #: Whether that listener wakes for every commit of another process, not only for new jobs.
    hears_commits: bool = False
    #: Whether claims leave out the queues that ``QueueSelector.excluded`` names.
    excludes_queues: bool = False
