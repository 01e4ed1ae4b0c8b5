"""What watches the time of attempts, apart from what runs them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from steady_queue_core.features.time_limits.options import TimeLimit
from steady_queue_core.processes.worker import time_outs
from steady_queue_core.processes.worker.time_outs import TimeOuts

#: Seconds that a test waits at most.
PATIENCE = 20.0


def claim(job_id: int) -> Any:
    return SimpleNamespace(job_id=job_id)


class Watched:
    """Notes what becomes of each job."""

    def __init__(self) -> None:
        self.told: list[int] = []
        self.given_up: list[int] = []
        self.reported: list[int] = []
        self.fails = self.waits = 0
        self.may_report = threading.Event()
        self.may_report.set()
        self.time_outs = TimeOuts(self.tell, self.give_up, self.report)

    def tell(self, claim: Any) -> None:
        if self.fails:
            self.fails -= 1
            raise RuntimeError("no more threads")
        self.told.append(claim.job_id)

    def give_up(self, claim: Any) -> bool:
        self.given_up.append(claim.job_id)
        self.waits -= 1
        return self.waits < 0

    def report(self, claim: Any) -> None:
        assert self.may_report.wait(PATIENCE)
        self.reported.append(claim.job_id)

    def begin(self, job_id: int, timeout: float, grace: float = 0.0) -> None:
        self.time_outs.begin(claim(job_id), TimeLimit(timeout, grace))


@pytest.fixture
def watched() -> Iterator[Watched]:
    found = Watched()
    yield found
    found.may_report.set()
    found.time_outs.close()


def await_that(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_a_job_that_takes_too_long_is_told_and_then_given_up(watched: Watched) -> None:
    watched.begin(1, 60)
    watched.begin(2, 0.05)  # Earlier than the first one, for which it sleeps.
    await_that(lambda: watched.told == [2])
    assert watched.time_outs.expired(2) == TimeLimit(0.05, 0.0)
    assert watched.time_outs.expired(1) is None
    await_that(lambda: watched.time_outs.stuck == {2})
    assert (watched.told, watched.given_up, watched.reported) == ([2], [2], [2])
    watched.time_outs.end(2)
    assert watched.time_outs.stuck == set()


def test_a_job_that_has_ended_is_left_alone(watched: Watched) -> None:
    watched.begin(1, 0.05)
    watched.time_outs.end(1)
    watched.begin(2, 0.1)
    await_that(lambda: watched.told)
    assert watched.told == [2]
    assert watched.time_outs.watched
    watched.time_outs.end(2)
    assert not watched.time_outs.watched


def test_a_job_that_is_not_to_blame_is_looked_at_again(watched: Watched) -> None:
    watched.waits = 1
    watched.begin(1, 0.01)
    await_that(lambda: watched.time_outs.stuck)
    assert watched.given_up == [1, 1]


def test_what_cannot_be_told_is_told_again(watched: Watched) -> None:
    watched.fails = 1
    watched.begin(1, 0.01)
    await_that(lambda: watched.told == [1])
    assert watched.given_up == []


def test_a_log_that_waits_keeps_no_job_from_beginning_or_ending(watched: Watched) -> None:
    watched.may_report.clear()
    watched.begin(1, 0.01)
    await_that(lambda: watched.told == [1])
    watched.begin(2, 60)
    watched.time_outs.end(1)
    watched.time_outs.end(2)
    assert watched.reported == []


def test_a_job_that_was_told_otherwise_is_given_up_after_its_grace(watched: Watched) -> None:
    watched.time_outs.note_told(claim(1), TimeLimit(float("inf"), 0.0))
    await_that(lambda: watched.time_outs.stuck == {1})
    assert (watched.told, watched.reported) == ([], [])


def test_a_thread_that_cannot_be_started_is_tried_again(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context:
        context.setattr(time_outs.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            watched.begin(1, 0.0)
        watched.time_outs.end(1)
    watched.begin(2, 0.0)
    await_that(lambda: watched.told == [2])


def refuse(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
