"""Configurations and steps that several fault tests share."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Collection
from typing import Any

from . import proc
from .checker import check
from .harness import Project, Supervisor
from .waiting import wait_for

#: Leases short enough for a test to outlast them.
SHORT_LEASE = {"process_heartbeat_interval": 0.3, "process_alive_threshold": 1.5}


def with_constants(**constants: float) -> str:
    """Return settings under which constants of the product have other values: those are chosen for
    servers, and a test would wait for them. Names have ``__`` for the dots of their modules."""
    paths = {f"steady_queue_core.{name.replace('__', '.')}": constants[name] for name in constants}
    return f"FAULTAPP_CONSTANTS = {paths!r}"


#: A supervisor that looks for the dead at once. Others wait for ten seconds once they have started,
#: and after an outage: processes may be about to come back.
SOON = with_constants(processes__supervisor__maintenance__HEARTBEAT_GRACE=1.0)
#: One that does not kill what was stopped, however long it takes until it may go on.
SPARING = with_constants(
    processes__supervisor__maintenance__HEARTBEAT_GRACE=1.0,
    processes__supervisor__managed_processes__MIN_KILL_GRACE=60.0,
    processes__supervisor__managed_processes__HELD_UP_GRACE=60.0,
)


def queue(processes: int = 2, threads: int = 2, **options: Any) -> dict[str, Any]:
    """Return a ``STEADY_QUEUE`` with that many workers and a brisk dispatcher."""
    return {
        "workers": [{"processes": processes, "threads": threads, "polling_interval": 0.1}],
        "dispatchers": [{"polling_interval": 0.4}],
        **options,
    }


def durations(count: int, longest: float, seed: int = 1) -> list[list[float]]:
    """Return the argument lists of tasks that take up to ``longest`` seconds."""
    source = random.Random(seed)
    return [[round(source.uniform(0, longest), 4)] for _ in range(count)]


def verdict(
    project: Project, *, own_failures: Collection[int] = (), threads: int | None = None
) -> list[str]:
    """Return what the checker finds in a project whose processes have been stopped, or run on."""
    snapshot = project.snapshot()
    return check(
        project.enqueued,
        project.attempts(),
        snapshot,
        project.kills,
        living=[pid for pid in snapshot.processes if proc.alive(pid)],
        own_failures=own_failures,
        threads=threads,
    )


def stop_all(project: Project) -> None:
    """End every supervisor that still runs; each must do so in good order."""
    running = [each for each in project.supervisors if each.process.poll() is None]
    for supervisor in running:
        supervisor.send(signal.SIGTERM)
    assert [supervisor.wait_exit() for supervisor in running] == [0] * len(running)


def one_state_each(project: Project) -> None:
    """I2, in the middle of things."""
    for job_id, row in project.snapshot().jobs.items():
        assert len(row.states) == 1, f"job {job_id} is in states {row.states}"


def swept(settings: dict[str, Any]) -> dict[str, Any]:
    """Have the dispatcher look for what is stuck each second; see ``nothing_to_repair``."""
    settings["dispatchers"][0]["concurrency_maintenance_interval"] = 1
    return settings


def nothing_to_repair(project: Project) -> None:
    """What is killed leaves no batch stuck: neither did a dispatcher find one, nor does a sweep."""
    for supervisor in project.supervisors:
        assert "rows of batches" not in supervisor.errors()
    assert project.client.call("repair_batches") == 0


def registered(project: Project, pid: int) -> bool:
    return bool(project.query("SELECT 1 FROM steady_queue_processes WHERE pid = ?", pid))


def freeze(project: Project, supervisor: Supervisor, *pids: int) -> None:
    """Stop processes, while none of them holds the write lock or the lock file: a stop with one of
    them would hold up all others, too."""
    with project.lock_file(), project.write_lock():
        for pid in pids:
            assert supervisor.send(signal.SIGSTOP, pid) is not None, f"{pid} has ended"
        wait_for(lambda: all(map(proc.is_stopped, pids)), 5, f"the stop of {pids}")


def thaw(supervisor: Supervisor, *pids: int) -> None:
    for pid in pids:
        supervisor.send(signal.SIGCONT, pid)


def claimed_by(project: Project, pid: int) -> int:
    """Return how many jobs a process has claimed."""
    [(number,)] = project.query(
        "SELECT count(*) FROM steady_queue_claimed_executions c "
        "JOIN steady_queue_processes p ON p.id = c.process_id WHERE p.pid = ?",
        pid,
    )
    return int(number)


def work_with_a_backlog(project: Project, pid: int) -> int:
    """Have a worker of one thread run a job and hold claims of others; return the job's id."""

    def backlog() -> int:
        # Short ones first, until the worker claims ahead of its thread.
        short = [[0.0]] * 60
        ids = project.enqueue("work", *short, [0.2], *short)
        job_id = ids[len(short)]
        project.wait_started(job_id)
        return job_id if claimed_by(project, pid) > 5 else 0

    return wait_for(backlog, 20, "a backlog")


def wait_pruned(project: Project, pid: int, seconds: float = 30.0) -> None:
    wait_for(lambda: not registered(project, pid), seconds, f"the end of the row of {pid}")


def wait_gone(pids: Collection[int], seconds: float) -> float:
    """Wait until processes have ended; return how long it took."""
    began = time.monotonic()
    wait_for(lambda: not any(map(proc.alive, pids)), seconds, f"the end of {sorted(pids)}")
    return time.monotonic() - began


def busy_worker(project: Project, supervisor: Supervisor) -> int:
    """Return a worker of ``supervisor`` that is running a task now."""

    def found() -> int:
        running = {attempt.pid for attempt in project.attempts() if attempt.ended_at is None}
        return next(iter(running.intersection(supervisor.workers())), 0)

    return wait_for(found, 20, "a running task")


def refusal(project: Project, *arguments: str) -> str:
    """Return what a supervisor says that refuses to start; it must do so in good order."""
    supervisor = project.start(*arguments, checks=True)
    assert supervisor.wait_exit() == 1
    message = supervisor.errors()
    assert "Traceback" not in message
    assert message.strip()
    assert not proc.in_session(supervisor.pid)
    return message
