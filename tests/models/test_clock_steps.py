"""The clock of the database is set forward or back: on every database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from steady_queue_core.configuration import Configuration
from steady_queue_core.conformance.base import limited_job
from steady_queue_core.dialects import ProcessIdentity
from steady_queue_core.models import ClaimedExecution, Permit, Process
from steady_queue_core.models import process as processes
from steady_queue_core.models.operations.semaphore_maintenance import SemaphoreMaintenance
from steady_queue_core.models.process import Beat
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.base.steady_clock import SteadyClock
from steady_queue_core.processes.supervisor.maintenance import Maintenance
from steady_queue_core.processes.supervisor.pruning import Pruner
from steady_queue_core.processes.supervisor.recovery import Rescuer

from .everywhere import Jobs, on_every_database
from .recurrence import tasks
from .stepped_clock import SteppedClock, clock

__all__ = ["clock"]

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
LEASE = 5 * MINUTE


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)


class Supervised(Jobs):
    """Two workers, of which one has ended, and a supervisor that has looked at the clock."""

    def __init__(self, using: str, clock: SteppedClock) -> None:
        super().__init__(using)
        self.clock = clock
        self.dead = processes.register(
            using, kind="worker", name="dead", pid=2, hostname="there", supervisor_id=None,
            metadata="{}",
        )  # fmt: skip
        database = QueueDatabase(using)
        self.pruning = Pruner(database, Rescuer(database), LEASE)
        self.pruning.read_clock()

    def beat(self, process: ProcessIdentity | None = None) -> bool:
        return processes.beat(self.using, process or self.worker) is Beat.RECORDED

    def pass_time(self, minutes: int) -> None:
        """Let so many minutes pass, each with a heartbeat of the living and a round of pruning."""
        for _ in range(minutes):
            self.clock.wait(MINUTE - SECOND)
            assert self.beat(), "the living worker was declared dead"
            self.clock.wait(SECOND)
            self.prune()

    def prune(self) -> None:
        self.pruning.prune(self.pruning.expired(), lambda process: None)

    @property
    def names(self) -> list[str]:
        return sorted(Process.objects.using(self.using).values_list("name", flat=True))


@on_every_database
def test_a_step_forward_makes_no_process_look_dead(using: str, clock: SteppedClock) -> None:
    jobs = Supervised(using, clock)
    [claim] = jobs.claimed()
    clock.step(HOUR)
    jobs.prune()
    assert jobs.names == ["dead", "worker-1"]
    assert jobs.ids(ClaimedExecution) == [claim.job_id]
    assert jobs.beat()


@on_every_database
@pytest.mark.parametrize("minutes", [0, 3, 8], ids=["at once", "later", "after its end"])
def test_a_step_forward_delays_no_rescue(using: str, clock: SteppedClock, minutes: int) -> None:
    jobs = Supervised(using, clock)
    jobs.pass_time(minutes)
    clock.step(HOUR)
    jobs.prune()
    jobs.pass_time(max(0, 4 - minutes))
    assert jobs.names == (["worker-1"] if minutes > 5 else ["dead", "worker-1"])
    jobs.pass_time(2)
    assert jobs.names == ["worker-1"]


@on_every_database
def test_who_dies_after_a_step_is_found_as_ever(using: str, clock: SteppedClock) -> None:
    jobs = Supervised(using, clock)
    clock.step(HOUR)
    assert jobs.beat(jobs.dead)
    jobs.pass_time(4)
    assert jobs.names == ["dead", "worker-1"]
    jobs.pass_time(3)
    assert jobs.names == ["worker-1"]


@on_every_database
def test_a_clock_that_is_set_forward_again_and_again_hides_no_dead_process(
    using: str, clock: SteppedClock
) -> None:
    jobs = Supervised(using, clock)
    for _ in range(7):
        clock.step(10 * MINUTE)
        jobs.pass_time(1)
    assert jobs.names == ["worker-1"]


@on_every_database
def test_a_step_while_a_process_wakes_up_does_not_declare_it_dead(
    using: str, clock: SteppedClock
) -> None:
    jobs = Supervised(using, clock)
    clock.wait(6 * MINUTE)
    expired = jobs.pruning.expired()
    assert jobs.beat()
    clock.step(HOUR)
    jobs.pruning.prune(expired, lambda process: None)
    assert jobs.names == ["worker-1"]
    assert jobs.beat()


@on_every_database
def test_after_a_step_back_the_living_live_and_the_dead_are_found_that_much_later(
    using: str, clock: SteppedClock
) -> None:
    jobs = Supervised(using, clock)
    clock.step(-10 * MINUTE)
    jobs.pass_time(14)
    assert jobs.names == ["dead", "worker-1"]
    jobs.pass_time(2)
    assert jobs.names == ["worker-1"]


@on_every_database
@pytest.mark.parametrize("how", ["started", "gone on with"])
def test_a_supervisor_sees_a_step_soon_after_its_start(
    using: str, clock: SteppedClock, how: str
) -> None:
    jobs = Supervised(using, clock)
    options = Configuration.Options().resolve()
    maintenance = Maintenance(options, using, [], "supervisor")  # type: ignore[arg-type]  # no children
    if how == "gone on with":
        maintenance.resume("worker-1", jobs.worker.id, ())
        maintenance.step()
    else:
        maintenance.register()
    clock.step(HOUR)
    maintenance._next_prune = 0.0
    maintenance.step()
    assert {"dead", "worker-1"} <= set(jobs.names)


@on_every_database
def test_a_step_forward_takes_no_permit_from_the_living(using: str, clock: SteppedClock) -> None:
    jobs = Supervised(using, clock)
    jobs.dialect.enqueue(jobs.connection, [limited_job(), limited_job()])
    [claim] = jobs.claim()
    jobs.beat()
    judge = SteadyClock(LEASE).read
    assert SemaphoreMaintenance(using, judge).do() == 0
    clock.step(HOUR)
    assert SemaphoreMaintenance(using, judge).do() == 0
    assert jobs.ids(Permit) == [claim.job_id]
    clock.wait(2 * MINUTE)
    assert SemaphoreMaintenance(using, judge).do() == 0
    clock.wait(2 * MINUTE)
    assert SemaphoreMaintenance(using, judge).do() == 1
