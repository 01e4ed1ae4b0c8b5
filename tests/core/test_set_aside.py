"""Outcomes that wait for the lock of a row."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from steady_queue_core.dialects import Ending, Link, Outcome
from steady_queue_core.processes.worker import set_aside
from steady_queue_core.processes.worker.attempt import RunResult
from steady_queue_core.processes.worker.needed_rows import Row
from steady_queue_core.processes.worker.set_aside import SetAside


def result(job_id: int, **fields: Any) -> RunResult:
    return RunResult(Outcome(Ending.FINISHED, job_id, 1, "default", 0, **fields))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    found = SimpleNamespace(now=100.0)
    monkeypatch.setattr(set_aside.time, "monotonic", lambda: found.now)
    return found


LIMITED, OTHER = result(1, concurrency_key="k"), result(2)
MEMBER, ELSEWHERE = result(3, link=Link(7)), result(4, link=Link(8))


def test_those_that_share_a_row_are_tried_again_ever_later(clock: SimpleNamespace) -> None:
    aside = SetAside()
    assert (bool(aside), aside.until_due) == (False, math.inf)
    pauses = []
    for _ in range(5):
        assert aside.put_sharing([LIMITED, OTHER]) == [OTHER]
        pauses.append(aside.until_due)
        clock.now += aside.until_due
        assert aside.until_due == 0
        assert aside.take() == [LIMITED]
    assert pauses == [1, 2, 4, 8, 8]
    aside.note_stored([OTHER])
    aside.put_sharing([LIMITED])
    assert aside.until_due == 8
    aside.note_stored([LIMITED])
    aside.put_sharing([LIMITED])
    assert aside.until_due == 1


def test_where_others_meet_a_lock_too_they_do_not_wait(clock: SimpleNamespace) -> None:
    """All of the database is busy, such as a file of SQLite."""
    aside = SetAside()
    aside.put_sharing([LIMITED])
    clock.now += 1
    aside.put_sharing([*aside.take(), OTHER])
    assert aside.until_due == 2
    for batch in ([OTHER], []):
        assert aside.put_sharing(batch) == batch
        assert aside.until_due == 0


def test_those_that_come_later_put_nothing_off(clock: SimpleNamespace) -> None:
    """Otherwise each of a stream of them would, and none were tried again."""
    aside = SetAside()
    aside.put_locked([MEMBER], {Row("JobBatch", 7)})
    for rows in ({Row("Job", 2)}, {Row("Semaphore", "k")}):
        clock.now += 0.4
        aside.put([OTHER], rows)
    assert aside.until_due == pytest.approx(0.2)
    aside.take()
    aside.put([OTHER])
    assert aside.until_due == 2


def test_only_those_wait_that_change_a_locked_row() -> None:
    aside = SetAside()
    batch = [LIMITED, OTHER, MEMBER, ELSEWHERE]
    assert aside.put_locked(batch, {Row("JobBatch", 7)}) == [LIMITED, OTHER, ELSEWHERE]
    another = result(5, link=Link(7))
    assert aside.put_akin([another, ELSEWHERE, OTHER]) == [ELSEWHERE, OTHER]
    assert aside.take() == [MEMBER, another]
    assert aside.put_akin([another]) == [another]


def test_the_row_of_a_job_may_be_locked_too() -> None:
    aside = SetAside()
    assert aside.put_locked([OTHER, MEMBER], {Row("Job", 2)}) == [MEMBER]
