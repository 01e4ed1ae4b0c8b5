"""The tables of one database as they are: read, aged and emptied without the queue's help."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from steady_queue_core.models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    Job,
    Pause,
    Process,
    ReadyExecution,
    ScheduledExecution,
)
from steady_queue_core.models.semaphore import Permit, Semaphore

from .ledger import BLOCKED, CLAIMED, FAILED, FINISHED, READY, SCHEDULED, Ledger

PLACES: dict[str, Any] = {
    READY: ReadyExecution,
    SCHEDULED: ScheduledExecution,
    BLOCKED: BlockedExecution,
    CLAIMED: ClaimedExecution,
    FAILED: FailedExecution,
}
MODELS: tuple[Any, ...] = (*PLACES.values(), Job, Permit, Semaphore, Pause, Process)
INSTANTS: tuple[tuple[Any, str], ...] = (
    (ScheduledExecution, "due_at"),
    (ClaimedExecution, "created_at"),
    (Process, "last_heartbeat_at"),
    (Job, "finished_at"),
)


class Tables:
    def __init__(self, using: str) -> None:
        self.using = using

    def rows(self, model: Any) -> Any:
        return model._default_manager.using(self.using)

    def clear(self) -> None:
        for model in MODELS:
            self.rows(model).all()._raw_delete(self.using)

    def age(self, by: timedelta) -> None:
        """Make all instants earlier: so time passes for the queue."""
        for model, field in INSTANTS:
            for pk, instant in self.rows(model).values_list("pk", field):
                if instant is not None:
                    self.rows(model).filter(pk=pk).update(**{field: instant - by})

    def check(self, ledger: Ledger) -> None:
        """Raise ``AssertionError`` unless everything is where the ledger says."""
        self._check_states(ledger)
        self._check_places(ledger)
        self._check_permits(ledger)
        paused = set(self.rows(Pause).values_list("pk", flat=True))
        assert paused == ledger.paused, f"paused: {paused}, not {ledger.paused}"
        registered = set(self.rows(Process).values_list("pk", flat=True))
        assert registered == set(ledger.heard), f"processes: {registered}, not {ledger.heard}"

    def _check_states(self, ledger: Ledger) -> None:
        found: dict[int, list[str]] = {}
        jobs = self.rows(Job).values_list("pk", "finished_at", "attempts")
        attempts = {}
        for job_id, finished_at, ended in jobs:
            found[job_id] = [] if finished_at is None else [FINISHED]
            attempts[job_id] = ended
        for state, model in PLACES.items():
            for job_id in self.rows(model).values_list("pk", flat=True):
                places = found.setdefault(job_id, ["no job"])
                if state == FAILED and places == [FINISHED]:
                    places.clear()
                places.append(state)
        states = {job_id: [entry.state] for job_id, entry in ledger.jobs.items()}
        assert found == states, f"they are {_differing(found, states)}"
        expected = {job_id: entry.attempts for job_id, entry in ledger.jobs.items()}
        assert attempts == expected, f"attempts: {_differing(attempts, expected)}"

    def _check_places(self, ledger: Ledger) -> None:
        for state in (READY, SCHEDULED, BLOCKED, CLAIMED):
            model = PLACES[state]
            found = set(self.rows(model).values_list("pk", "queue_name", "rank", "token"))
            expected = {
                (each.job_id, each.wanted.queue, each.wanted.rank, each.token)
                for each in ledger.of(state)
            }
            assert found == expected, f"{state}: {found ^ expected}"
        for state in (SCHEDULED, BLOCKED):
            keys = dict(self.rows(PLACES[state]).values_list("pk", "concurrency_key"))
            assert keys == {each.job_id: each.wanted.key for each in ledger.of(state)}
        claims = dict(self.rows(ClaimedExecution).values_list("pk", "process_id"))
        assert claims == {each.job_id: each.process for each in ledger.of(CLAIMED)}

    def _check_permits(self, ledger: Ledger) -> None:
        permits = dict(self.rows(Permit).values_list("pk", "key"))
        expected = {job_id: key for key, holders in ledger.holders.items() for job_id in holders}
        assert permits == expected, f"permits: {_differing(permits, expected)}"
        found = {key: (value, to) for key, value, to in self.rows(Semaphore).values_list()}
        known = {key: (ledger.left(key), to) for key, to in ledger.limits.items()}
        assert found == known, f"semaphores: {_differing(found, known)}"
        for key in {each.wanted.key for each in ledger.of(BLOCKED)}:
            value, to = found[key]
            assert value == 0 and list(permits.values()).count(key) >= to, f"{key!r} waits"


def _differing(found: dict[Any, Any], expected: dict[Any, Any]) -> str:
    keys = sorted({*found, *expected}, key=str)
    return ", ".join(
        f"{key!r}: {found.get(key)}, not {expected.get(key)}"
        for key in keys
        if found.get(key) != expected.get(key)
    )
