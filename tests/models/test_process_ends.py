"""What is kept of processes that have not ended by themselves: on every database."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connections

from steady_queue_core.conformance import threads
from steady_queue_core.dialects import portable
from steady_queue_core.dialects.registry import dialect_for
from steady_queue_core.errors import ProcessExitError
from steady_queue_core.listings.process_ends import REASONS, ListedEnd, listed_ends
from steady_queue_core.models import Process, ProcessEnd
from steady_queue_core.models import process as processes
from steady_queue_core.models.operations.clear import KEPT, PastEnds
from steady_queue_core.models.process_end import MOST_JOBS
from steady_queue_core.processes.base import system
from steady_queue_core.processes.base.database import QueueDatabase, Unavailable
from steady_queue_core.processes.base.journal_reader import JournalSnapshot
from steady_queue_core.processes.dispatcher.retention import expired
from steady_queue_core.processes.supervisor import ends
from steady_queue_core.processes.supervisor.ends import Reason
from steady_queue_core.processes.supervisor.recovery import Rescuer

from .everywhere import on_every_database
from .recurrence import tasks
from .test_dead_processes import Deaths

KILLED = Reason(ends.SIGNAL, "It was killed by SIGKILL.", -9)
GONE = ProcessExitError("It has left.")


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)


def the_end(using: str) -> ListedEnd:
    [found] = listed_ends(using, 10)
    return found


@on_every_database
def test_a_silent_process_leaves_when_and_why_it_ended_and_what_it_held(using: str) -> None:
    jobs = Deaths(using)
    Process.objects.using(using).update(
        metadata=json.dumps({"queues": ["mail", "im*"], "threads": 3, "version": "1.2"})
    )
    claims = jobs.claimed(2)
    jobs.silence("worker-1")
    last = Process.objects.using(using).values_list("last_heartbeat_at", flat=True).get()
    jobs.prune()
    end = the_end(using)
    row = end.row
    assert (row.process_id, row.name, row.kind) == (jobs.worker.id, "worker-1", "worker")
    assert (row.pid, row.hostname, row.reason) == (1, "here", ends.HEARTBEAT)
    assert (row.held, row.lost, end.endings) == (2, 2, {"failed": 2})
    assert row.last_heartbeat_at == last
    assert row.started_at is not None
    assert portable.aware(row.ended_at) > portable.aware(last)
    assert end.queues == ["mail", "im*"]
    assert end.why == "It sent no heartbeat for 0:05:00."
    assert [job.job_id for job in end.jobs] == [claim.job_id for claim in claims]
    assert {(job.ending, job.lost) for job in end.jobs} == {("failed", True)}


@on_every_database
def test_of_many_jobs_the_lost_ones_are_named_first_and_a_bounded_number(using: str) -> None:
    jobs = Deaths(using)
    claims = jobs.claimed(MOST_JOBS + 5)
    last = claims[-1].job_id
    left = JournalSnapshot(running=frozenset({last}))
    jobs.recovery.rescue_process("worker-1", left, GONE, KILLED)
    end = the_end(using)
    assert (end.row.held, end.row.lost) == (MOST_JOBS + 5, 1)
    assert end.endings == {"failed": 1, "released": MOST_JOBS + 4}
    assert end.fate == f"1 failed, {MOST_JOBS + 4} given back"
    assert len(end.jobs) == MOST_JOBS
    assert [(job.job_id, job.lost) for job in end.jobs[:2]] == [
        (last, True), (claims[0].job_id, False),
    ]  # fmt: skip


@on_every_database
def test_two_supervisors_that_rescue_at_once_leave_one_end_with_all_claims(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Deaths(using)
    jobs.claimed(4)
    barrier = threading.Barrier(2)
    original = Rescuer._bury

    def bury(self: Rescuer, *arguments: Any) -> None:
        barrier.wait(20)
        original(self, *arguments)

    monkeypatch.setattr(Rescuer, "_bury", bury)

    def rescue() -> None:
        Rescuer(QueueDatabase(using)).rescue_process("worker-1", None, GONE, KILLED)

    threads.run_all(using, [rescue, rescue], 30)
    end = the_end(using)
    assert (end.row.held, end.row.lost) == (4, 4)
    assert len({job.job_id for job in end.jobs}) == len(end.jobs) == 4
    assert jobs.names == []


@on_every_database
def test_who_comes_second_adds_the_claims_that_it_has_ended(using: str) -> None:
    jobs = Deaths(using)
    jobs.claimed(3)
    second = Rescuer(QueueDatabase(using))
    settle = second._settle

    def first_one_buries(done: Any) -> set[int]:
        held = settle(done)
        ours = Reason(ends.HEARTBEAT, "It was silent.")
        jobs.recovery.rescue_process("worker-1", None, GONE, ours)
        return held

    second._settle = first_one_buries  # type: ignore[method-assign]  # mutant
    second.rescue_process("worker-1", None, GONE, KILLED)
    end = the_end(using)
    assert (end.row.reason, end.row.held, end.row.lost) == (ends.HEARTBEAT, 3, 3)
    assert end.endings == {"failed": 3}
    assert len(end.jobs) == 3


@on_every_database
def test_an_outage_between_the_claims_and_the_row_forgets_nothing(using: str) -> None:
    jobs = Deaths(using)
    jobs.claimed(2)
    bury, calls = jobs.recovery._bury, []

    def fail_once(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 1:
            raise Unavailable(0.0, lost=True)
        bury(*arguments)

    jobs.recovery._bury = fail_once  # type: ignore[method-assign]  # mutant
    with pytest.raises(Unavailable):
        jobs.recovery.rescue_process("worker-1", None, GONE, KILLED)
    assert not listed_ends(using, 10)
    jobs.recovery.rescue_process("worker-1", None, GONE, KILLED)
    assert (the_end(using).row.held, the_end(using).row.lost) == (2, 2)
    assert jobs.recovery._estates == {}


@on_every_database
def test_a_process_that_ends_by_itself_costs_nothing_and_leaves_nothing(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Deaths(using)
    processes.deregister(using, "worker-1")
    run, runs = jobs.recovery.database.run, []

    def counted(work: Any) -> Any:
        runs.append(work)
        return run(work)

    monkeypatch.setattr(jobs.recovery.database, "run", counted)
    jobs.recovery.rescue_process("worker-1", JournalSnapshot(), GONE, KILLED)
    assert len(runs) == 1  # It looks whether the process has taken its row away.
    jobs.register("worker-2")
    jobs.recovery.rescue_process("worker-2", JournalSnapshot(), GONE, None)
    assert not listed_ends(using, 10)
    assert jobs.names == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("using", ["default"])
def test_a_damaged_row_is_taken_away_even_if_its_end_cannot_be_kept(using: str) -> None:
    jobs = Deaths(using)
    [claim] = jobs.claimed()
    with connections[using].cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = 1")
        cursor.execute("UPDATE steady_queue_processes SET pid = 'x', created_at = 'never'")
        cursor.execute("PRAGMA ignore_check_constraints = 0")
    jobs.recovery.rescue_process("worker-1", None, GONE, KILLED)
    assert not listed_ends(using, 10)
    assert jobs.names == []
    assert list(jobs.failures) == [claim.job_id]


def ended(using: str, number: int, ago: timedelta = timedelta(0)) -> ProcessEnd:
    present = dialect_for(using).current_time(connections[using]) - ago
    return ProcessEnd.objects.using(using).create(
        process_id=number, name=f"worker-{number}", kind="worker", pid=number, hostname="here",
        ended_at=portable.storable(present), reason="signal", held=0, lost=0,
    )  # fmt: skip


@on_every_database
def test_old_ends_and_those_in_excess_are_cleared(using: str) -> None:
    for number in range(3):
        ended(using, number, KEPT + timedelta(minutes=1))
    kept = [ended(using, number).pk for number in range(3, 9)]
    present = dialect_for(using).current_time(connections[using])
    rows = ProcessEnd.objects.using(using).order_by("pk")
    sweep = PastEnds(using, present)
    assert (sweep.clear(2), sweep.clear(2), sweep.exhausted) == (2, 1, True)
    assert list(rows.values_list("pk", flat=True)) == kept
    sweep = PastEnds(using, present, most=4)
    assert (sweep.clear(10), sweep.exhausted) == (2, True)
    assert list(rows.values_list("pk", flat=True)) == kept[2:]
    assert "PastEnds" in dict(expired(using, present))


def child(status: int | None, *, clean: bool = False, **fields: Any) -> Any:
    given = {"exit_code": status, "ended_for": "", "journal": SimpleNamespace(exited_cleanly=clean)}
    return SimpleNamespace(**given | fields)


@pytest.mark.parametrize("using", ["default"])
@pytest.mark.parametrize(
    ("given", "how", "memory", "code"),
    [
        (child(-9), "was killed by SIGKILL", False, ends.SIGNAL),
        (child(-9), "was killed by SIGKILL", True, ends.MEMORY),
        (child(-11), "was killed by SIGSEGV", True, ends.SIGNAL),
        (child(3), "ended with exit code 3", False, ends.EXIT),
        (child(0), "ended with exit code 0", False, ends.EXIT),
        (child(0, clean=True), "ended with exit code 0", False, None),
        (child(0, clean=True, ended_for="frozen"), "ended with exit code 0", False, None),
        (child(-9, ended_for="frozen"), "was killed by SIGKILL", True, "frozen"),
        (child(-9, ended_for="held"), "was killed by SIGKILL", False, "held"),
        (child(-9, clean=True, ended_for="stop"), "was killed by SIGKILL", False, "stop"),
        (child(None), "ended", False, None),
        (child(None, error=ValueError()), "ended with ValueError", False, ends.ERROR),
        (child(None, ended_for="stop"), "was given up", False, "stop"),
    ],
)
def test_why_a_child_has_ended(given: Any, how: str, memory: bool, code: str | None) -> None:
    reason = Reason.of_child(given, how, memory_is_short=memory)
    assert (reason and reason.code) == code
    if reason:
        assert how in reason.words
        assert code in REASONS
        assert ("memory" in reason.words) == (code == ends.MEMORY)


@pytest.mark.parametrize("using", ["default"])
def test_kills_for_want_of_memory_are_noticed_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tmp_path / "queue.service"
    group.mkdir()
    (tmp_path / "cgroup").write_text("1:cpu:/x\n0::/queue.service\n")
    (tmp_path / "vmstat").write_text("nr_free_pages 17\noom_kill 40\n")
    monkeypatch.setattr(system, "CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(system, "CGROUPS", tmp_path)
    monkeypatch.setattr(system, "VMSTAT", tmp_path / "vmstat")
    assert system.memory_kills() == 40
    (group / "memory.events").write_text("low 0\noom 1\noom_kill 2\noom_group_kill 9\n")
    assert system.memory_kills() == 2
    kills = system.MemoryKills()
    assert not kills.are_recent
    (group / "memory.events").write_text("oom_kill 3\n")
    assert kills.are_recent
    kills.look()  # Not due: it has just looked.
    assert kills.are_recent
    monkeypatch.setattr(kills, "_next", 0.0)
    kills.look()
    assert kills.are_recent
    monkeypatch.setattr(kills, "_next", 0.0)
    kills.look()
    assert not kills.are_recent
    (group / "memory.events").write_text("oom_kill much\n")
    (tmp_path / "vmstat").unlink()
    assert system.memory_kills() == 0
