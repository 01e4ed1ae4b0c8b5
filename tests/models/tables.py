"""The tables of one database as they are: read, aged and emptied without the queue's help."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import connections
from django.db.models import F

from steady_queue_core.models import (
    BlockedExecution,
    Checkpoint,
    ClaimedExecution,
    FailedExecution,
    Job,
    Pause,
    Process,
    ReadyExecution,
    Retention,
    ScheduledExecution,
    Step,
)
from steady_queue_core.models.semaphore import Permit, Semaphore
from steady_queue_core.tasks.metadata import JobMetadata

from .ledger import BLOCKED, CLAIMED, FAILED, FINISHED, READY, SCHEDULED, Ledger

PLACES: dict[str, Any] = {
    READY: ReadyExecution,
    SCHEDULED: ScheduledExecution,
    BLOCKED: BlockedExecution,
    CLAIMED: ClaimedExecution,
    FAILED: FailedExecution,
}
#: What the rows of a state say of their jobs.
_PLACED: dict[str, Any] = {
    "queue_name": lambda entry: entry.wanted.queue,
    "rank": lambda entry: entry.wanted.rank,
    "token": lambda entry: entry.token,
}
_LIMITED = _PLACED | {"concurrency_key": lambda entry: entry.wanted.key}
DETAILS: dict[str, dict[str, Any]] = {
    READY: _PLACED,
    SCHEDULED: _LIMITED,
    BLOCKED: _LIMITED,
    CLAIMED: _PLACED | {"process_id": lambda entry: entry.process},
}
MODELS: tuple[Any, ...] = (
    *PLACES.values(), Job, Permit, Semaphore, Pause, Process, Retention, Checkpoint, Step,
)  # fmt: skip
INSTANTS: tuple[tuple[Any, str], ...] = (
    (ScheduledExecution, "due_at"),
    (ClaimedExecution, "created_at"),
    (Process, "last_heartbeat_at"),
    (Job, "enqueued_at"),
    (Job, "finished_at"),
    (Retention, "expires_at"),
)


class Tables:
    def __init__(self, using: str) -> None:
        self.using = using

    def rows(self, model: Any) -> Any:
        return model._default_manager.using(self.using)

    def read(self, model: Any, *fields: str) -> list[Any]:
        """Return all rows without the models, which would take longer than what is tested."""
        meta, connection = model._meta, connections[self.using]
        known = [meta.pk if name == "pk" else meta.get_field(name) for name in fields]
        columns = ", ".join(connection.ops.quote_name(field.column) for field in known)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {columns} FROM {meta.db_table}")
            return list(cursor.fetchall())

    def keys(self, model: Any) -> set[Any]:
        return {key for (key,) in self.read(model, "pk")}

    def clear(self) -> None:
        for model in MODELS:
            self.rows(model).all()._raw_delete(self.using)

    def age(self, by: timedelta) -> None:
        """Make all instants earlier: so time passes for the queue."""
        for model, field in INSTANTS:
            self.rows(model).update(**{field: F(field) - by})

    def check(self, ledger: Ledger) -> None:
        """Raise ``AssertionError`` unless everything is where the ledger says."""
        self._check_jobs(ledger)
        self._check_permits(ledger)
        self._check_metadata(ledger)
        self._check_checkpoints(ledger)
        self._check_steps(ledger)
        paused = self.keys(Pause)
        assert paused == ledger.paused, f"paused: {paused}, not {ledger.paused}"
        registered = self.keys(Process)
        assert registered == set(ledger.heard), f"processes: {registered}, not {ledger.heard}"

    def _check_jobs(self, ledger: Ledger) -> None:
        jobs = self.read(Job, "pk", "finished_at", "attempts")
        ended = {job_id: (finished_at is not None, count) for job_id, finished_at, count in jobs}
        expected = {
            each.job_id: (each.state in (FINISHED, FAILED), each.attempts)
            for each in ledger.jobs.values()
        }
        assert ended == expected, f"ended, attempts: {differing(ended, expected)}"
        for state, model in PLACES.items():
            fields = ["pk", *DETAILS.get(state, {})]
            found = {pk: tuple(rest) for pk, *rest in self.read(model, *fields)}
            wanted = {
                each.job_id: tuple(detail(each) for detail in DETAILS.get(state, {}).values())
                for each in ledger.of(state)
            }
            assert found == wanted, f"{state}: {differing(found, wanted)}"

    def _check_metadata(self, ledger: Ledger) -> None:
        """What a job keeps beyond its columns, when it may start, and how long it is kept."""
        rows = dict(self.read(Job, "pk", "metadata"))
        read = {pk: JobMetadata.read(text) for pk, text in rows.items()}
        known = {
            pk: replace(metadata, crashes=(), on_success=None, on_failure=None)
            for pk, metadata in read.items()
        }
        expected = {each.job_id: each.metadata for each in ledger.jobs.values()}
        assert known == expected, f"metadata: {differing(known, expected)}"
        crashes = {pk: len(metadata.crashes) for pk, metadata in read.items()}
        told = {pk: (bool(each.on_success), bool(each.on_failure)) for pk, each in read.items()}
        wanted = {each.job_id: each.wanted.told for each in ledger.jobs.values()}
        assert told == wanted, f"callbacks: {differing(told, wanted)}"
        counted = {each.job_id: each.crashes for each in ledger.jobs.values()}
        assert crashes == counted, f"crashes: {differing(crashes, counted)}"
        for claim in self.rows(ClaimedExecution).select_related("job"):
            job, entry = claim.job, ledger.jobs[claim.pk]
            assert (job.started_at is not None or job.errors is not None) == entry.has_begun
            deadline = known[job.pk].deadline(job.enqueued_at)
            if deadline is not None and not entry.has_begun:
                assert entry.claimed_at < entry.enqueued_at + (entry.wanted.expires or 0.0)
        kept = {
            each.job_id: each.kept_until not in (None, math.inf)
            for each in ledger.jobs.values() if each.kept_until is not None
        }  # fmt: skip
        found = dict(self.read(Retention, "pk", "expires_at"))
        ends = {pk: expires_at is not None for pk, expires_at in found.items()}
        assert ends == kept, f"kept, and not for ever: {differing(ends, kept)}"

    def _check_checkpoints(self, ledger: Ledger) -> None:
        """What attempts have stored; nothing of jobs that are gone."""
        found = {
            pk: (token, data and int(data), done)
            for pk, token, data, done in self.read(Checkpoint, "pk", "token", "data", "done")
        }
        wanted = {each.job_id: each.stored for each in ledger.jobs.values() if each.stored}
        assert found == wanted, f"checkpoints: {differing(found, wanted)}"

    def _check_steps(self, ledger: Ledger) -> None:
        """What the steps of jobs have returned; nothing of jobs that are gone."""
        found: dict[int, list[tuple[int, int]]] = {}
        rows = self.read(Step, "job_id", "position", "name", "token", "data")
        for job_id, position, name, token, data in sorted(rows):
            taken = found.setdefault(job_id, [])
            assert (name, position) == (f"step {len(taken)}", len(taken))
            taken.append((token, int(data)))
        wanted = {each.job_id: each.steps for each in ledger.jobs.values() if each.steps}
        assert found == wanted, f"steps: {differing(found, wanted)}"

    def _check_permits(self, ledger: Ledger) -> None:
        permits = dict(self.read(Permit, "pk", "key"))
        expected = {job_id: key for key, holders in ledger.holders.items() for job_id in holders}
        assert permits == expected, f"permits: {differing(permits, expected)}"
        found = {
            key: (value, to) for key, value, to in self.read(Semaphore, "pk", "value", "limit")
        }
        known = {key: (ledger.left(key), to) for key, to in ledger.limits.items()}
        assert found == known, f"semaphores (left, of): {differing(found, known)}"
        for key in {each.wanted.key for each in ledger.of(BLOCKED)}:
            value, to = found[key]
            assert value <= 0, f"{key!r} waits for one of {value} permits"
            assert list(permits.values()).count(key) >= to, f"{key!r} waits"


def differing(found: dict[Any, Any], expected: dict[Any, Any]) -> str:
    keys = sorted({*found, *expected}, key=str)
    return "; ".join(
        f"{key!r}: {found.get(key)}, not {expected.get(key)}"
        for key in keys
        if found.get(key) != expected.get(key)
    )
