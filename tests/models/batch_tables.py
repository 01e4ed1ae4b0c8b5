"""The tables of batches as they are, beside those of jobs."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from django.db.models import F

from steady_queue_core import arguments
from steady_queue_core.models import BatchMember, Dependency, Job, JobBatch, Step, WaitingExecution

from .batch_ledger import (
    DEPENDENCIES,
    FAILURES,
    NAP,
    OPEN,
    PENDING,
    RUN_WHEN,
    STATES,
    WAITING,
    BatchLedger,
)
from .ledger import Ledger
from .tables import PLACES, Tables, differing

INSTANTS = ("created_at", "started_at", "cancelled_at", "finished_at")


class BatchTables(Tables):
    def clear(self) -> None:
        super().clear()
        for model in (JobBatch, BatchMember, Dependency, WaitingExecution):
            self.rows(model).all()._raw_delete(self.using)

    def age(self, by: timedelta) -> None:
        super().age(by)
        self.rows(JobBatch).update(**{field: F(field) - by for field in INSTANTS})
        for step in self.rows(Step).filter(is_sleep=True):
            until: Any = arguments.decode(step.data, resolve_models=False)
            data = arguments.encode(until - by, root="sleep")
            self.rows(Step).filter(pk=step.pk).update(data=data)

    def check(self, ledger: Ledger) -> None:
        assert isinstance(ledger, BatchLedger)
        super().check(ledger)
        self._check_places()
        self._check_waiting(ledger)
        self._check_batches(ledger)
        self._check_members(ledger)
        self._check_ends()

    def _check_places(self) -> None:
        """Each job is in one place."""
        found: Counter[int] = Counter()
        for model in (*PLACES.values(), WaitingExecution):
            found.update(self.keys(model))
        for pk, finished_at in self.read(Job, "pk", "finished_at"):
            assert found[pk] in ((0, 1) if finished_at is not None else (1,)), (pk, found[pk])
        assert max(found.values(), default=1) == 1, found

    def _check_waiting(self, ledger: BatchLedger) -> None:
        fields = ("pk", "queue_name", "rank", "token", "concurrency_key")
        found = {pk: tuple(rest) for pk, *rest in self.read(WaitingExecution, *fields)}
        expected = {
            each.job_id: (each.wanted.queue, each.wanted.rank, each.token, each.wanted.key)
            for each in ledger.of(WAITING)
        }
        assert found == expected, f"waiting: {differing(found, expected)}"
        rows = self.read(Dependency, "job_id", "parent_id", "run_when", "state")
        waits = {(job, parent): (RUN_WHEN[how], DEPENDENCIES[state])
                 for job, parent, how, state in rows}  # fmt: skip
        wanted = {
            (job_id, each.parent): (each.run_when, each.state)
            for job_id, some in ledger.waits.items() for each in some
        }  # fmt: skip
        assert waits == wanted, f"dependencies: {differing(waits, wanted)}"
        for pk in found:
            states = [state for (job, _), (_, state) in waits.items() if job == pk]
            assert OPEN in states, f"job {pk} waits for nothing"

    def _check_batches(self, ledger: BatchLedger) -> None:
        fields = ("started_at", "cancelled_at", "finished_at", "total", "failed")
        found = {
            pk: (
                kind, member if member in ledger.members else None, started is not None,
                cancelled is not None, finished is not None, total, failed,
            )
            for pk, kind, member, started, cancelled, finished, total, failed
            in self.read(JobBatch, "pk", "kind", "member_id", *fields)
        }  # fmt: skip
        expected = {
            each.batch_id: (
                each.kind, each.member if each.member in ledger.members else None,
                each.has_started, each.is_cancelled, each.finished_at is not None, each.total,
                each.failed,
            )
            for each in ledger.batches.values()
        }  # fmt: skip
        assert found == expected, f"batches: {differing(found, expected)}"

    def _check_members(self, ledger: BatchLedger) -> None:
        rows = self.read(BatchMember, "pk", "batch_id", "job_id", "state")
        found = {pk: (batch, job, STATES[state]) for pk, batch, job, state in rows}
        expected = {
            each.member_id: (each.batch, each.job, each.state) for each in ledger.members.values()
        }
        assert found == expected, f"members: {differing(found, expected)}"

    def _check_ends(self) -> None:
        """What holds of the rows, whatever the ledger says."""
        members = {
            pk: (batch, STATES[state])
            for pk, batch, state in self.read(BatchMember, "pk", "batch_id", "state")
        }
        rows = self.read(JobBatch, "pk", "started_at", "finished_at", "total", "failed")
        for pk, started_at, finished_at, *counts in rows:
            states = [state for batch, state in members.values() if batch == pk]
            is_over = started_at is not None and PENDING not in states
            assert (finished_at is not None) is is_over, f"batch {pk}: {states}"
            counted = [len(states), sum(each in FAILURES for each in states)]
            assert counts == (counted if is_over else [None, None]), pk
        for job, parent, how in self.read(Dependency, "job_id", "parent_id", "state"):
            state = members[parent][1] if how == DEPENDENCIES.index(OPEN) else PENDING
            assert state == PENDING, f"job {job} waits for member {parent}, which has {state}"

    def _check_steps(self, ledger: Ledger) -> None:
        found: dict[int, list[tuple[int, int]]] = {}
        rows = self.read(Step, "job_id", "position", "name", "is_sleep", "token", "data")
        for job_id, position, name, is_sleep, token, data in sorted(rows):
            taken = found.setdefault(job_id, [])
            kind = "sleep" if is_sleep else "step"
            assert (name, position) == (f"{kind} {len(taken)}", len(taken))
            taken.append((token, NAP if is_sleep else int(data)))
        wanted = {each.job_id: each.steps for each in ledger.jobs.values() if each.steps}
        assert found == wanted, f"steps: {differing(found, wanted)}"
