"""Dead processes of which somebody has locked the rows do not keep others from being rescued."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any, cast
from unittest import mock

import pytest
from django.db import connections

from steady_queue_core.configuration import Configuration
from steady_queue_core.conformance.threads import holding
from steady_queue_core.dialects import portable
from steady_queue_core.errors import ProcessExitError
from steady_queue_core.models import ClaimedExecution, FailedExecution, Process
from steady_queue_core.models import process as processes
from steady_queue_core.processes.base import system
from steady_queue_core.processes.base.database import QueueDatabase, Unavailable
from steady_queue_core.processes.base.journal_reader import JournalSnapshot
from steady_queue_core.processes.base.registration import ProcessLocation
from steady_queue_core.processes.supervisor.maintenance import Maintenance
from steady_queue_core.processes.supervisor.managed_processes import ManagedProcesses
from steady_queue_core.processes.supervisor.pruning import Pruner
from steady_queue_core.processes.supervisor.recovery import Rescuer

from .everywhere import Jobs, on_every_server
from .recurrence import tasks

NAMES = ["dead-1", "dead-2", "dead-3"]
#: Of this host, with a birth that no process has.
ENDED = json.dumps(ProcessLocation(system.host_id(), "never", None).as_metadata())


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> Iterator[None]:
    settings.TASKS = tasks(using)
    is_postgres = connections[using].vendor == "postgresql"
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SET lock_timeout = '300ms'" if is_postgres else "SET innodb_lock_wait_timeout = 1"
        )
    yield
    connections[using].close()


class Dead(Jobs):
    """Three processes that hold a claim each, and a supervisor that has just started."""

    def __init__(self, using: str, metadata: str = "{}") -> None:
        super().__init__(using)
        processes.deregister(using, "worker-1")
        for name in NAMES:
            self.worker = processes.register(
                using, kind="worker", name=name, pid=1, hostname="here", supervisor_id=None,
                metadata=metadata,
            )  # fmt: skip
            self.claimed()
        database = QueueDatabase(using)
        self.pruning = Pruner(database, Rescuer(database), timedelta(minutes=5))

    def silence(self) -> None:
        past = portable.storable(self.dialect.current_time(self.connection) - timedelta(hours=1))
        self.rows.update(last_heartbeat_at=past)

    def prune(self) -> None:
        self.pruning.prune(self.pruning.expired(), lambda process: None)

    def lock_row(self) -> None:
        """Lock the first process, as a long transaction does."""
        list(self.rows.filter(name="dead-1").select_for_update())

    def lock_claim(self) -> None:
        first = self.rows.get(name="dead-1").pk
        rows = ClaimedExecution.objects.using(self.using).filter(process_id=first)
        list(rows.select_for_update())

    @property
    def rows(self) -> Any:
        return Process.objects.using(self.using)

    @property
    def names(self) -> list[str]:
        return sorted(self.rows.filter(name__in=NAMES).values_list("name", flat=True))


@on_every_server
@pytest.mark.parametrize("lock", [Dead.lock_row, Dead.lock_claim], ids=["row", "claim"])
def test_a_silent_process_that_is_locked_holds_up_no_other(
    using: str, lock: Callable[[Dead], None]
) -> None:
    dead = Dead(using)
    dead.silence()
    with holding(using, lambda: lock(dead), 30):
        dead.prune()
        assert (dead.names, bool(dead.pruning.silent)) == (["dead-1"], True)
        assert len(dead.ids(FailedExecution)) == 2
    dead.prune()
    assert (dead.names, bool(dead.pruning.silent)) == ([], False)
    assert len(dead.ids(FailedExecution)) == 3


@on_every_server
def test_an_ended_process_that_is_locked_holds_up_no_other_and_not_the_silent_ones(
    using: str,
) -> None:
    dead = Dead(using, ENDED)
    silent = processes.register(
        using, kind="worker", name="silent", pid=1, hostname="there", supervisor_id=None,
        metadata="{}",
    )  # fmt: skip
    dead.rows.filter(pk=silent.id).update(
        last_heartbeat_at=portable.storable(processes.NEVER_AGAIN)
    )
    options = Configuration.Options().resolve()
    maintenance = Maintenance(options, using, cast(ManagedProcesses, []), "supervisor")
    maintenance.database.timeouts = None  # It would open another connection.
    maintenance.register()
    maintenance._next_prune = 0.0
    with holding(using, dead.lock_claim, 30):
        maintenance.step()
        assert dead.names == ["dead-1"]
        assert not dead.rows.filter(name="silent").exists()
        assert maintenance.lock_timed_out
    maintenance._next_exited_check = 0.0
    maintenance.step()
    assert dead.names == []


@on_every_server
def test_a_child_whose_rescue_waits_keeps_no_other_process_from_it(using: str) -> None:
    dead = Dead(using, ENDED)
    options = Configuration.Options().resolve()
    maintenance = Maintenance(options, using, cast(ManagedProcesses, []), "supervisor")
    maintenance.database.timeouts = None  # It would open another connection.
    maintenance.register()
    rescue = partial(
        maintenance.rescuer.rescue_process, "dead-1", JournalSnapshot(), ProcessExitError("ended")
    )
    with holding(using, dead.lock_claim, 30):
        maintenance.deferred.add(rescue, "dead-1")
        maintenance.step()
        assert (dead.names, maintenance.deferred.is_blocked) == (["dead-1"], True)
        assert len(dead.ids(FailedExecution)) == 2
    maintenance.deferred.run(now=True)
    assert (dead.names, bool(maintenance.deferred)) == ([], False)
    # What its journal says has held: the others had no journal.
    assert len(dead.ids(FailedExecution)) == 2


@on_every_server
def test_many_claims_that_are_locked_keep_no_others_from_their_end(using: str) -> None:
    dead = Dead(using)
    dead.worker = processes.register(
        using, kind="worker", name="dead-4", pid=1, hostname="here", supervisor_id=None,
        metadata="{}",
    )  # fmt: skip
    claims = [claim.job_id for claim in dead.claimed(8)]

    def lock() -> None:
        for job_id in claims[:5]:
            list(ClaimedExecution.objects.using(using).filter(pk=job_id).select_for_update())

    rescuer, error = Rescuer(QueueDatabase(using)), ProcessExitError("ended")
    with holding(using, lock, 30):
        with pytest.raises(Unavailable):
            rescuer.rescue_process("dead-4", None, error)
        assert dead.ids(FailedExecution) == claims[5:]
    rescuer.rescue_process("dead-4", None, error)
    assert dead.ids(FailedExecution) == claims


@on_every_server
def test_those_that_were_locked_are_tried_after_all_others(using: str) -> None:
    dead = Dead(using)
    dead.silence()
    tried: list[str] = []
    locked = {"dead-1", "dead-2"}

    def rescue(name: str, *args: Any) -> None:
        tried.append(name)
        if name in locked:
            raise Unavailable(0.0, lost=False)

    with (
        mock.patch.object(dead.pruning.rescuer, "rescue_process", rescue),
        mock.patch.object(dead.pruning.rescuer, "rescue_orphans"),
    ):
        dead.prune()
        locked.remove("dead-2")
        dead.silence()
        dead.prune()
    assert tried == ["dead-1", "dead-2", "dead-3", "dead-3", "dead-1", "dead-2"]


@on_every_server
def test_an_outage_ends_the_round(using: str) -> None:
    dead = Dead(using)
    dead.silence()
    lost = Unavailable(0.0, lost=True)
    with (
        mock.patch.object(dead.pruning.rescuer, "rescue_process", side_effect=lost) as rescue,
        pytest.raises(Unavailable),
    ):
        dead.prune()
    assert rescue.call_count == 1
