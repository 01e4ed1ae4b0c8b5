"""The rows of unique keys in one database: which job has a key, and until when."""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.backends.base.base import BaseDatabaseWrapper

from ..features.unique.key import JobKey
from .batches import parts
from .operations import Operations
from .portable import aware, storable
from .portable.models import model

if TYPE_CHECKING:
    from .outcome import Outcome
    from .records import ClaimedJob

#: Who takes a key locks its row by writing another one of these numbers.
TICKET_BITS = 63

#: Before each try to free the keys of jobs that are about to start, in seconds. Whoever enqueues
#: with such a key gives way for longer.
START_PAUSES = (0.0, 0.005, 0.015, 0.03)

#: Columns that may hold megabytes, and that nobody asks for here.
LARGE = ("arguments", "metadata", "worker_ids", "errors", "return_value")

#: By the primary key alone: a condition with several keys makes MySQL read, and so lock, a small
#: table as a whole.
DELETE = "DELETE FROM {table} WHERE {key} = %s AND ({job} = %s OR {job} IS NULL)"


class UniqueKeys:
    """Takes and frees unique keys. What it changes belongs in a transaction of its caller.

    Lock order: the keys, in their order, come before everything else.
    """

    def __init__(self, connection: BaseDatabaseWrapper, dialect: Operations) -> None:
        self.connection, self.dialect = connection, dialect

    def lock(self, keys: Collection[str]) -> dict[str, Any]:
        """Lock the rows of ``keys``, and insert those that are missing; return them all. A row
        without a job has to be given one, or to be freed, in the same transaction."""
        for some in parts(sorted(set(keys))):
            rows = [model("UniqueKey")(key=key, ticket=secrets.randbits(TICKET_BITS))
                    for key in some]  # fmt: skip
            self.dialect.upsert(self.connection, rows, ["key"], ["ticket"])
        # Having been written, they are seen as they are, even if this transaction's snapshot is
        # older.
        return self.read(keys)

    def read(self, keys: Collection[str]) -> dict[str, Any]:
        """Return the rows of ``keys`` that exist, without locking them."""
        found: dict[str, Any] = {}
        for some in parts(sorted(set(keys))):
            found |= {row.pk: row for row in self._rows.filter(pk__in=some)}
        return found

    def of_jobs(self, job_ids: Sequence[int]) -> dict[str, int]:
        """Return the keys of these jobs, and which of them has each."""
        return dict(self._rows.filter(job_id__in=job_ids).values_list("pk", "job_id"))

    def holders(self, rows: Mapping[str, Any]) -> dict[str, Any]:
        """Return the jobs that have these keys. Other keys are free: their job has ended, is gone,
        or has kept its key for long enough."""
        job_ids = [row.job_id for row in rows.values() if row.job_id is not None]
        jobs = self._jobs(job_ids) if job_ids else {}
        if not jobs:
            return {}
        present = None
        if any(row.expires_at is not None for row in rows.values()):
            present = self.dialect.current_time(self.connection)
        return {
            key: jobs[row.job_id]
            for key, row in rows.items()
            if row.job_id in jobs and _is_held(row, jobs[row.job_id], present)
        }

    def take(self, owners: Mapping[str, int]) -> None:
        """Give locked keys to these jobs."""
        rows = [
            model("UniqueKey")(key=key, job_id=owners[key], ticket=secrets.randbits(TICKET_BITS))
            for key in sorted(owners)
        ]
        for some in parts(rows):
            self.dialect.upsert(self.connection, some, ["key"], ["job", "expires_at"])

    def free(self, ended: Mapping[str, int | None]) -> None:
        """Free keys that these jobs have. ``None``: free it only if it has no job."""
        if not ended:
            return
        meta: Any = model("UniqueKey")._meta
        quote = self.connection.ops.quote_name
        statement = DELETE.format(
            table=quote(meta.db_table),
            key=quote(meta.pk.column),
            job=quote(meta.get_field("job").column),
        )
        # No job has the id 0.
        values = [(key, ended[key] or 0) for key in sorted(ended)]
        with self.connection.cursor() as cursor:
            cursor.executemany(statement, values)

    def keep(self, ended: Mapping[str, tuple[int, timedelta]]) -> None:
        """Let keys stay with these jobs, which have just ended, for some time."""
        if not ended:
            return
        present = self.dialect.current_time(self.connection)
        for key, (job_id, period) in sorted(ended.items()):
            rows = self._rows.filter(pk=key, job_id=job_id)
            rows.update(expires_at=storable(present + period))

    def end(self, held: Sequence[Outcome], locked: Iterable[str] = ()) -> None:
        """Free, or keep, the keys of the jobs that ended with these outcomes, which were stored.
        Those that were ``locked`` for it and have no job are deleted."""
        freed: dict[str, int | None] = dict.fromkeys(locked)
        kept: dict[str, tuple[int, timedelta]] = {}
        for outcome in held:
            if outcome.unique_key is None or not outcome.completes_job:
                continue
            key, keep = outcome.unique_key.key, outcome.unique_key.keep
            if keep and outcome.has_succeeded and not outcome.deletes_job:
                kept[key] = outcome.job_id, keep
            else:
                freed[key] = outcome.job_id
        self.free(freed)
        self.keep(kept)

    def free_started(self, claims: Sequence[ClaimedJob]) -> set[int]:
        """Free the keys that jobs have until they start; return the ids of those that must not
        start yet, because somebody is enqueueing with their key."""
        busy = set[int]()
        ending = [claim for claim in claims if claim.ends_key_at_start]
        for pause in START_PAUSES:
            if not ending:
                break
            time.sleep(pause)
            busy = self.start(ending)
            ending = [claim for claim in ending if claim.job_id in busy]
        return busy

    def start(self, claims: Sequence[ClaimedJob]) -> set[int]:
        """Free the keys of claimed jobs that are about to start; return the ids of those that have
        to wait, because somebody who enqueues has locked their key.

        Nothing happens for claims that were lost.
        """
        keys = {key.key for claim in claims if (key := claim.unique_key) is not None}
        with self.dialect.transaction(self.connection):
            held = self._held(claims)
            # Not waited for: a worker has other jobs, too.
            rows = self._rows.filter(pk__in=sorted(keys)).order_by("pk")
            locked = {
                row.pk: row.job_id
                for row in self.dialect.lock_rows(self.connection, rows, wait=False)
            }
            freed = {key: job_id for key, job_id in locked.items() if job_id in held}
            self.free(freed)
            self._mark_started(list(freed.values()))
            left = self.read(keys - locked.keys())
        return {row.job_id for row in left.values() if row.job_id in held}

    def _mark_started(self, job_ids: Sequence[int]) -> None:
        """A job without its key has started, even if its process ends before it does so."""
        if job_ids:
            present = storable(self.dialect.current_time(self.connection))
            jobs = model("Job").objects.using(self.connection.alias)
            jobs.filter(pk__in=job_ids, started_at=None).update(started_at=present)

    def _held(self, claims: Sequence[ClaimedJob]) -> set[int]:
        """Return the jobs whose claims were not lost."""
        job_ids = [claim.job_id for claim in claims]
        rows = model("ClaimedExecution").objects.using(self.connection.alias)
        tokens = dict(rows.filter(pk__in=job_ids).values_list("pk", "token"))
        return {claim.job_id for claim in claims if tokens.get(claim.job_id) == claim.token}

    @property
    def _rows(self) -> Any:
        return model("UniqueKey").objects.using(self.connection.alias)

    def _jobs(self, job_ids: Sequence[int]) -> dict[int, Any]:
        """Return those of these jobs that exist, with their claims."""
        jobs = model("Job").objects.using(self.connection.alias)
        found: dict[int, Any] = {}
        for some in parts(sorted(set(job_ids))):
            rows = jobs.filter(pk__in=some).select_related("claimedexecution")
            found |= {row.pk: row for row in rows.defer(*LARGE)}
        gone = set(job_ids) - found.keys() if self.connection.in_atomic_block else set()
        for job_id in sorted(gone):
            # It may be newer than this transaction's snapshot: a lock looks at what is there.
            rows = self.dialect.lock_rows(self.connection, jobs.filter(pk=job_id), wait=True)
            found |= {row.pk: row for row in rows}
        return found


def keys_of(outcomes: Sequence[Outcome]) -> set[str]:
    """Return the keys that have to be locked before these outcomes are settled: none, if no
    semaphore is locked for it and nothing is enqueued. Then a key can be freed last, for whoever
    has locked it waits for nothing else that a settlement holds.
    """
    follow_ups = [
        key.key
        for outcome in outcomes if outcome.sequel is not None
        for each in outcome.sequel.follow_ups
        if (key := JobKey.read(each.job.metadata)) is not None
    ]  # fmt: skip
    if not follow_ups and not any(outcome.is_limited for outcome in outcomes):
        return set()
    ending = [o.unique_key.key for o in outcomes if o.unique_key is not None and o.completes_job]
    return {*follow_ups, *ending}


def _is_held(row: Any, job: Any, present: datetime | None) -> bool:
    if row.expires_at is not None and present is not None:
        return aware(row.expires_at) > present
    return job.finished_at is None
