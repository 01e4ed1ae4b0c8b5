"""The values that pass between the core and a dialect. All instants are aware and in UTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many of the jobs that share a key may hold a permit at once: be ready, or run."""

    key: str
    to: int
    #: How long a permit is safe from the start of the job on, and after its process was last heard.
    duration: timedelta
    #: Whether a job that finds no permit when it becomes due is deleted, rather than waits.
    discards: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to be inserted, with what decides its first execution."""

    queue_name: str
    #: Negated priority: the smaller, the sooner.
    rank: int
    task_path: str
    backend_name: str
    #: The encoded call, ready to be stored as text.
    arguments: str
    max_attempts: int = 1
    #: Not before this instant; in the past or ``None``: ready at once.
    run_at: datetime | None = None
    #: Not before this long after the database's present time. Excludes ``run_at``.
    delay: timedelta | None = None
    limit: Limit | None = None


class EnqueuedJob(NamedTuple):
    """What the database decided about a new job."""

    #: ``None``: it found no permit, and was not to wait for one.
    job_id: int | None
    enqueued_at: datetime


class ProcessIdentity(NamedTuple):
    """Which process: a database that was restored gives out ids again, but names never repeat."""

    id: int
    name: str


class ClaimedJob(NamedTuple):
    """A job taken by a process, with all that is needed to run it."""

    job_id: int
    #: The fence: grows with the claims of this job and never repeats; see ``portable.next_token``.
    token: int
    queue_name: str
    rank: int
    task_path: str
    backend_name: str
    arguments: str
    #: Attempts that ended before this claim.
    attempts: int
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

    @classmethod
    def from_row(
        cls,
        row: Mapping[str, Any],
        claimed_at: datetime,
        read_time: Callable[[Any, datetime], datetime],
    ) -> ClaimedJob:
        """Build a claim from a row that has ``CLAIM_COLUMNS``, by name.

        ``read_time(value, default)`` converts a stored time to an aware one; it may return
        ``default``, the time of the claim, for a value that cannot be read.
        """
        values = {name: row[name] for name in CLAIM_COLUMNS}
        values["enqueued_at"] = read_time(values["enqueued_at"], claimed_at)
        if values["started_at"] is not None:
            values["started_at"] = read_time(values["started_at"], claimed_at)
        return cls(claimed_at=claimed_at, **values)


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
)
#: Everything a claim is read from, apart from the time of the claim.
CLAIM_COLUMNS = EXECUTION_COLUMNS + JOB_COLUMNS


class Dispatched(NamedTuple):
    """One round of moving due jobs."""

    moved: int
    #: Seconds until the earliest job that is still scheduled is due; ``None``: there is none.
    next_due_in: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSelector:
    """The queues a worker serves: exact names, ``prefix*`` and ``*``, in order of precedence."""

    patterns: tuple[str, ...] = ("*",)

    @property
    def takes_all(self) -> bool:
        """Whether any queue is served, so that order is by priority alone, whatever is paused."""
        return "*" in self.patterns

    def matching(
        self, existing: Callable[[str], Sequence[str]], paused: frozenset[str]
    ) -> list[str]:
        """Return the exact names to poll, in order, without the paused ones; not for all queues.

        ``existing(prefix)`` lists the names that have ready jobs and start with ``prefix``.
        """
        names: dict[str, None] = {}
        for pattern in self.patterns:
            found = existing(pattern[:-1]) if pattern.endswith("*") else (pattern,)
            names.update(dict.fromkeys(found))
        return [name for name in names if name not in paused]


class Wakeup(Protocol):
    """A bell that rings when new work may be there. It may ring for nothing, and miss a ring:
    polling remains the floor."""

    @property
    def in_order(self) -> bool:
        """Whether it would ring now: workers poll less often while it would."""

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when the bell has rung."""

    def clear(self) -> None:
        """Read off what has rung so far; never blocks."""

    def close(self) -> None:
        """Give up the descriptor."""


#: Version of the contract that a plugin states in its ``DialectInfo``.
API_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DialectInfo:
    """What a dialect says of itself: facts that the core asks instead of a vendor's name."""

    #: Must equal the name of the plugin's entry point.
    name: str
    #: The product as shown to people, such as ``"SQLite 3.40.1"``.
    display_name: str
    api_version: int = API_VERSION
    #: Whether a second worker passes over rows that a first has locked, rather than waits.
    skips_locked: bool = True
    #: Whether ``steady_queue_wakeup`` gives a bell.
    has_wakeup: bool = False
