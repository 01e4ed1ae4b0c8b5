"""When a worker asks which of its jobs were cancelled."""

from __future__ import annotations

import math

import pytest

from steady_queue_core.processes.worker import cancellation_watch
from steady_queue_core.processes.worker.cancellation_watch import CancellationWatch


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(cancellation_watch, "time", found)
    return found


def test_nothing_is_asked_without_a_wakeup(clock: Clock) -> None:
    watch = CancellationWatch()
    assert watch.until_due(1e9) == math.inf
    assert not watch.open


def test_nothing_is_asked_while_all_jobs_are_young(clock: Clock) -> None:
    watch = CancellationWatch()
    watch.note_wakeup()
    assert watch.until_due(0.0) == 0.25
    assert watch.until_due(0.1) == pytest.approx(0.15)
    assert watch.until_due(-math.inf) == math.inf  # There is none.
    assert watch.until_due(0.25) <= 0


def test_a_wakeup_is_asked_about_twice(clock: Clock) -> None:
    """The request may be committed after the first question, and its own wake-up be left out as the
    second one within 5 ms."""
    watch = CancellationWatch()
    watch.note_wakeup()
    assert watch.until_due(9) <= 0
    watch.note_question()
    assert watch.until_due(9) == 0.25
    clock.now += 0.25
    assert watch.until_due(9) <= 0
    watch.note_question()
    clock.now += 100
    assert watch.until_due(9) == math.inf


def test_a_worker_that_never_sleeps_asks_now_and_then(clock: Clock) -> None:
    watch = CancellationWatch()
    watch.note_busy()
    assert watch.open
    watch.open = 0
    watch.note_busy()
    assert not watch.open
    clock.now += 0.6
    watch.note_busy()
    assert watch.open
