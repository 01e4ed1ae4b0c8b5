"""Outcomes that wait for the lock of a semaphore."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from steady_queue_core.processes.worker import set_aside
from steady_queue_core.processes.worker.set_aside import SetAside


def result(key: str | None) -> Any:
    return SimpleNamespace(outcome=SimpleNamespace(concurrency_key=key))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    found = SimpleNamespace(now=100.0)
    monkeypatch.setattr(set_aside.time, "monotonic", lambda: found.now)
    return found


LIMITED, OTHER = result("k"), result(None)


def test_those_with_a_limit_are_tried_again_ever_later(clock: SimpleNamespace) -> None:
    aside = SetAside()
    assert (bool(aside), aside.until_due) == (False, math.inf)
    pauses = []
    for _ in range(5):
        assert aside.put_limited([LIMITED, OTHER]) == [OTHER]
        pauses.append(aside.until_due)
        clock.now += aside.until_due
        assert aside.until_due == 0
        assert aside.take() == [LIMITED]
    assert pauses == [1, 2, 4, 8, 8]
    aside.note_stored([OTHER])
    aside.put_limited([LIMITED])
    assert aside.until_due == 8
    aside.note_stored([LIMITED])
    aside.put_limited([LIMITED])
    assert aside.until_due == 1


def test_where_others_meet_a_lock_too_they_do_not_wait(clock: SimpleNamespace) -> None:
    """All of the database is busy, such as a file of SQLite."""
    aside = SetAside()
    aside.put_limited([LIMITED])
    clock.now += 1
    aside.put_limited([*aside.take(), OTHER])
    assert aside.until_due == 2
    for batch in ([OTHER], []):
        assert aside.put_limited(batch) == batch
        assert aside.until_due == 0
