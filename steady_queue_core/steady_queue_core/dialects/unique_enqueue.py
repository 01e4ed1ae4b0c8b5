"""Enqueueing jobs of which some have unique keys."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from ..features.unique.key import FINISHED, JobKey
from .operations import Operations
from .portable import aware
from .portable.replacing import NoPermit, has_begun, is_starting, replace_jobs
from .ready import Ready
from .records import EnqueuedJob, NewJob, Refused
from .unique_keys import UniqueKeys
from .unique_latest import bounded, first_call

#: How long a call gives way to a job that is about to start, and how often it looks, in seconds.
LONGEST_WAIT, WAIT = 0.1, 0.005


class KeyTaken(Refused):
    """A job was not to be enqueued if another one has its key."""

    def __init__(self, number: int, key: str, job_id: int | None) -> None:
        super().__init__(f"the key {key!r} is taken by job {job_id}")
        #: The position of the job among those that were to be enqueued.
        self.number = number
        self.key = key
        #: The other job; ``None``: one that was to be enqueued together with it.
        self.job_id = job_id


@dataclass
class _Plan:
    """What becomes of each of the jobs, by their positions."""

    #: Jobs to insert.
    new: dict[int, NewJob] = field(default_factory=dict)
    #: The jobs to insert that get a key.
    owners: dict[str, int] = field(default_factory=dict)
    #: The present jobs that others stand for.
    existing: dict[int, Any] = field(default_factory=dict)
    #: The jobs to insert that others stand for.
    twins: dict[int, int] = field(default_factory=dict)
    #: The calls that jobs that wait are to become, by the ids of these: the last one that finds a
    #: permit, or may wait for one.
    replacing: dict[int, list[int]] = field(default_factory=dict)
    #: Those of these calls that found none, and must not wait.
    discarded: set[int] = field(default_factory=set)
    refused: KeyTaken | None = None

    def replace_twin(self, twin: int, number: int, key: JobKey, job: NewJob) -> None:
        """Insert another job in place of one that was to be inserted."""
        del self.new[twin]
        self.new[number], self.owners[key.key] = job, number
        self.twins = {each: number if of == twin else of for each, of in self.twins.items()}
        self.twins[twin] = number


class UniqueEnqueue:
    """Jobs to enqueue of which some have keys: those whose key another job has become that job, are
    refused, or replace it. Around the insertion of the others, in one transaction."""

    def __init__(
        self,
        connection: BaseDatabaseWrapper,
        dialect: Operations,
        jobs: Sequence[NewJob],
        keys: Sequence[JobKey | None],
        *,
        refuses: bool,
    ) -> None:
        self.connection, self.dialect, self.jobs, self.keys = connection, dialect, list(jobs), keys
        #: Whether jobs may be refused; otherwise such a job becomes the one that has its key.
        self.refuses = refuses
        self.rows = UniqueKeys(connection, dialect)
        self._plan, self._locked = _Plan(), dict[str, Any]()

    def lock(self) -> list[NewJob] | KeyTaken:
        """Lock the keys, and replace jobs that wait; return the jobs to insert, or why none is
        to be."""
        self._give_way()
        present = self._seen()
        known = {key.key for key in self.keys if key is not None}
        self._locked = self.rows.lock(known - present.keys())
        plan = self._plan = self._planned(present | self.rows.holders(self._locked))
        if plan.refused is not None:
            self.rows.free(dict.fromkeys(self._locked))
            return plan.refused
        self._bound(plan)
        if plan.replacing:
            replaced = self._replace(plan)
            plan.existing = {
                number: replaced.get(job.pk, job) for number, job in plan.existing.items()
            }
        return list(plan.new.values())

    def take(self, inserted: Sequence[EnqueuedJob]) -> list[EnqueuedJob]:
        """Give the keys to the jobs that were inserted; return what became of each job."""
        plan = self._plan
        stored = dict(zip(plan.new, inserted, strict=True))
        owners = {key: stored[number].job_id for key, number in plan.owners.items()}
        self.rows.take({key: job_id for key, job_id in owners.items() if job_id is not None})
        self._free(owners)
        return [self._enqueued(number, plan, stored) for number in range(len(self.jobs))]

    def _bound(self, plan: _Plan) -> None:
        """Let no call put off its job for longer than its key says."""
        if not any(key is not None and key.latest for key in self.keys):
            return
        first: dict[int, datetime | None] = dict.fromkeys(plan.owners.values())
        for calls in plan.replacing.values():
            first |= {number: first_call(plan.existing[number]) for number in calls}
        keys = {number: key for number in first if (key := self.keys[number]) and key.latest}
        present = self.dialect.current_time(self.connection)
        for number, key in keys.items():
            self.jobs[number] = bounded(self.jobs[number], key, first[number], present)
            if number in plan.new:
                plan.new[number] = self.jobs[number]

    def _replace(self, plan: _Plan) -> dict[int, Any]:
        """Replace jobs by calls that find a permit or may wait; return them by their ids."""
        while plan.replacing:
            last = {pk: self.jobs[calls[-1]] for pk, calls in plan.replacing.items()}
            try:
                return self._become(last)
            except NoPermit as error:
                for pk in error.job_ids:
                    plan.discarded.add(plan.replacing[pk].pop())
            plan.replacing = {pk: calls for pk, calls in plan.replacing.items() if calls}
        return {}

    def _become(self, replacing: Mapping[int, NewJob]) -> dict[int, Any]:
        """Make jobs what they are to become, by their ids, and return them. Raises ``NoPermit``."""
        replaced = replace_jobs(self.connection, self.dialect, replacing, self.jobs)
        Ready(self.connection, self.dialect).moved(list(replaced))
        return replaced

    def _give_way(self) -> None:
        """Wait, for a moment, for jobs that were claimed to start: they cannot while their key is
        locked, and it would be all the time if many calls lock it in turn."""
        keys = {key.key for key in self.keys if key is not None and key.ends_at_start}
        if not keys or not self.dialect.info.skips_locked:
            return
        until = time.monotonic() + LONGEST_WAIT
        while any(map(is_starting, self.rows.holders(self.rows.read(keys)).values())):
            if time.monotonic() >= until:
                return
            time.sleep(WAIT)

    def _seen(self) -> dict[str, Any]:
        """Return the jobs that have keys, as far as these need not be locked: a job that runs to
        its end all the same must not have to wait for the transaction of a call that comes to
        nothing."""
        keys = {
            key.key: key for key in self.keys if key is not None and key.until == FINISHED
        }  # fmt: skip
        holders = self.rows.holders(self.rows.read(keys)) if keys else {}
        return {
            key: job for key, job in holders.items() if not keys[key].replaces or has_begun(job)
        }

    def _planned(self, holders: Mapping[str, Any]) -> _Plan:
        plan = _Plan()
        for number, (job, key) in enumerate(zip(self.jobs, self.keys, strict=True)):
            if key is None:
                plan.new[number] = job
            elif key.key in holders:
                self._meet(plan, number, key, holders[key.key])
            elif key.key in plan.owners:
                self._meet_twin(plan, number, key, plan.owners[key.key])
            else:
                plan.new[number] = job
                plan.owners[key.key] = number
        return plan

    def _meet(self, plan: _Plan, number: int, key: JobKey, holder: Any) -> None:
        plan.existing[number] = holder
        if key.replaces and not has_begun(holder):
            plan.replacing.setdefault(holder.pk, []).append(number)
        self._refuse(plan, number, key, holder.pk)

    def _meet_twin(self, plan: _Plan, number: int, key: JobKey, twin: int) -> None:
        if key.replaces:
            plan.replace_twin(twin, number, key, self.jobs[number])
        else:
            plan.twins[number] = twin
        self._refuse(plan, number, key, None)

    def _refuse(self, plan: _Plan, number: int, key: JobKey, holder: int | None) -> None:
        if self.refuses and key.refuses and plan.refused is None:
            plan.refused = KeyTaken(number, key.key, holder)

    def _free(self, owners: Mapping[str, int | None]) -> None:
        """Delete the rows of keys that nobody has got: the job was not stored, since it found no
        permit and was not to wait."""
        discarded = [key for key, job_id in owners.items() if job_id is None]
        self.rows.free({key: self._locked[key].job_id for key in discarded})

    def _enqueued(self, number: int, plan: _Plan, stored: Mapping[int, EnqueuedJob]) -> EnqueuedJob:
        if number in stored:
            return stored[number]
        if number in plan.twins:
            twin = stored[plan.twins[number]]
            return twin if twin.job_id is None else twin._replace(is_duplicate=True)
        holder = plan.existing[number]
        if number in plan.discarded:
            return EnqueuedJob(None, self.dialect.current_time(self.connection))
        return EnqueuedJob(holder.pk, aware(holder.enqueued_at), is_duplicate=True)
