"""The pauses of a worker between looks that find too few jobs."""

from __future__ import annotations

import time
from itertools import accumulate

import pytest

from steady_queue_core.processes.worker.poll_timer import PollTimer


@pytest.fixture(autouse=True)
def _stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)


def pauses(timer: PollTimer, looks: int, *, is_listening: bool) -> list[float]:
    """Return the milliseconds after each of so many looks in vain."""
    found = []
    for _ in range(looks):
        timer.note_look(0, 3, is_listening=is_listening)
        found.append(round(timer.until_due * 1000, 3))
    return found


def test_a_worker_looks_ever_more_rarely_up_to_its_interval() -> None:
    assert pauses(PollTimer(0.1), 9, is_listening=False) == [1, 2, 4, 8, 16, 32, 64, 100, 100]


def test_a_worker_that_will_be_woken_rests_sooner_and_for_longer() -> None:
    assert pauses(PollTimer(0.1), 7, is_listening=True) == [1, 4, 16, 64, 256, 500, 500]


def test_what_a_wake_up_stood_for_is_looked_for_just_when_the_next_would_be_sent() -> None:
    """PostgreSQL's dialect sends no second notification within 5 ms."""
    looks = list(accumulate(pauses(PollTimer(0.1), 3, is_listening=True)))
    assert 5 in looks


def test_a_worker_looks_again_at_once_while_it_finds_enough() -> None:
    timer = PollTimer(0.1)
    pauses(timer, 5, is_listening=False)
    timer.note_look(3, 3, is_listening=False)
    assert timer.until_due == 0
    assert pauses(timer, 2, is_listening=False) == [1, 2]


def test_what_it_could_not_look_for_changes_no_pause() -> None:
    timer = PollTimer(0.1)
    pauses(timer, 3, is_listening=False)
    timer.note_look(0, 0, is_listening=False)
    assert timer.until_due == pytest.approx(0.004)
    assert pauses(timer, 1, is_listening=False) == [8]


def test_a_wake_up_starts_over() -> None:
    timer = PollTimer(0.1)
    pauses(timer, 5, is_listening=True)
    timer.start_over()
    assert timer.until_due <= 0
    assert pauses(timer, 2, is_listening=True) == [1, 4]


def test_a_pause_that_is_asked_for_makes_no_later_one_longer() -> None:
    timer = PollTimer(0.1)
    pauses(timer, 1, is_listening=False)
    timer.postpone(1.0)
    assert timer.until_due == 1.0
    assert pauses(timer, 1, is_listening=False) == [2]
