"""Which of a silent worker's jobs holds its interpreter."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from steady_queue_core.processes.base.journal_reader import LimitedEntry
from steady_queue_core.processes.base.system import waits_for_lock
from steady_queue_core.processes.supervisor import held_interpreters
from steady_queue_core.processes.supervisor.held_interpreters import HeldInterpreters

from .waiting import wait_for

#: A worker, whose main thread has that number, and the threads of two jobs.
WORKER, ONE, OTHER = 4_000_000, 4_000_001, 4_000_002


@pytest.mark.parametrize(
    ("wakeups", "blamed"),
    [
        pytest.param({WORKER: 200, ONE: 190, OTHER: 0}, {2}, id="one waits"),
        pytest.param({WORKER: 200, ONE: 190, OTHER: 3}, {2}, id="the other has been preempted"),
        pytest.param({WORKER: 9, ONE: 7, OTHER: 0}, {2}, id="on a machine that starves all"),
        pytest.param({WORKER: 200, ONE: 190, OTHER: 195}, set(), id="both wait"),
        pytest.param({WORKER: 0, ONE: 0, OTHER: 0}, {1, 2}, id="nobody wakes"),
        pytest.param({}, {1, 2}, id="the system does not tell"),
    ],
)
def test_whoever_does_not_wait_for_it_is_blamed(
    wakeups: dict[int, int], blamed: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert blamed_for(monkeypatch, wakeups) == blamed


def blamed_for(monkeypatch: pytest.MonkeyPatch, wakeups: dict[int, int]) -> frozenset[int]:
    """Return whose job a supervisor blames, where threads have so many wake-ups a second."""
    now = [100.0]
    monkeypatch.setattr(held_interpreters.time, "monotonic", lambda: now[0])

    def seen(pid: int, thread: int) -> int | None:
        return None if not wakeups else round(now[0] * wakeups[thread])

    monkeypatch.setattr(held_interpreters, "wakeups_of", seen)
    limited = [LimitedEntry(1, 90.0, ONE), LimitedEntry(2, 90.0, OTHER)]
    child: Any = SimpleNamespace(
        name="worker-1", pid=WORKER, held_by=None, seen_at=90.0,
        journal=SimpleNamespace(limited=limited),
    )  # fmt: skip
    held = HeldInterpreters()
    assert held.look_at(child) == set()
    now[0] += held_interpreters.OBSERVATION
    return held.look_at(child)


LOCKED = """
import ctypes, sys, threading, time
lock = threading.Lock()
lock.acquire()
waiting = threading.Thread(target=lock.acquire, daemon=True)
waiting.start()
print(waiting.native_id, flush=True)
ctypes.PyDLL(None).sleep(60)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at threads in /proc")
def test_a_thread_that_waits_for_a_lock_is_told_from_one_that_holds_the_interpreter() -> None:
    with subprocess.Popen([sys.executable, "-c", LOCKED], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        thread = int(process.stdout.readline())
        wait_for(lambda: waits_for_lock(process.pid, thread), 10, "its wait for the lock")
        assert not waits_for_lock(process.pid, process.pid)
        process.kill()


def test_whoever_waits_for_a_lock_is_not_blamed_beside_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    locked: set[int] = {ONE}
    monkeypatch.setattr(held_interpreters, "waits_for_lock", lambda _, thread: thread in locked)
    assert blamed_for(monkeypatch, {WORKER: 200, ONE: 0, OTHER: 0}) == {2}
    locked.add(OTHER)
    assert blamed_for(monkeypatch, {WORKER: 200, ONE: 0, OTHER: 0}) == {1, 2}
