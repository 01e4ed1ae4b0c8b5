"""What a worker and its task processes say to each other."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from steady_queue_core.dialects import ClaimedJob, Ending, Outcome, Sequel, StepRecord
from steady_queue_core.processes.base.database import DatabaseClock
from steady_queue_core.processes.worker import outcomes
from steady_queue_core.processes.worker.error_text import describe
from steady_queue_core.processes.worker.executor import Executor
from steady_queue_core.processes.worker.frames import Frames
from steady_queue_core.processes.worker.nursery import NurseryLost
from steady_queue_core.processes.worker.process_executor import ProcessExecutor
from steady_queue_core.processes.worker.task_process import EndedAtWork, NotStarted, TaskProcess
from steady_queue_core.processes.worker.wire import (
    read_job,
    read_outcome,
    write_job,
    write_outcome,
)
from steady_queue_core.tasks.metadata import JobMetadata

from ..app.tasks import noop

BEGAN = datetime(2026, 11, 23, 1, 2, 3, 4, tzinfo=UTC)
CLAIM = ClaimedJob(
    job_id=17,
    token=(7 << 32) + 5,
    queue_name="mail é\ud800",
    rank=-3,
    task_path="shop.tasks.send",
    backend_name="default",
    arguments='{"args": ["\\"é\\""]}',
    attempts=1,
    max_attempts=3,
    worker_ids='["worker-a"]',
    errors=None,
    enqueued_at=BEGAN,
    started_at=None,
    claimed_at=BEGAN,
    concurrency_key="key",
)


#: Two sleeps that a task has begun.
SLEEPS = (
    StepRecord(17, CLAIM.token, "nap é", 3, is_sleep=True, data='"x"'),
    StepRecord(17, CLAIM.token, "b", 4, is_sleep=True, data="1"),
)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        yield ours, theirs


def test_a_claim_arrives_as_it_is() -> None:
    assert read_job(write_job(CLAIM, BEGAN)) == (CLAIM, BEGAN)
    again = CLAIM._replace(started_at=BEGAN, errors='[["a.B", "text"]]', follows=16)
    assert read_job(write_job(again, BEGAN)) == (again, BEGAN)


def test_a_row_that_holds_bytes_for_text_is_left_to_whoever_runs_the_job() -> None:
    damaged: Any = CLAIM._replace(arguments=b"\xff")  # type: ignore[arg-type]  # As SQLite lets it be.
    claim, _ = read_job(write_job(damaged, BEGAN))
    assert claim.arguments == "b'\\xff'"


@pytest.mark.parametrize(
    "outcome",
    [
        outcomes.finished(CLAIM, "worker-b", BEGAN, '"x"', preserve=False),
        outcomes.unsuccessful(CLAIM, "worker-b", BEGAN, describe(ValueError("é\0")), lambda: 2.5),
        outcomes.unsuccessful(CLAIM, "worker-b", BEGAN, describe(ValueError()), lambda: None),
        outcomes.released(CLAIM),
        outcomes.snoozed(CLAIM, BEGAN, 2.5)._replace(sequel=Sequel(sleeps=SLEEPS, is_implied=True)),
        outcomes.finished(CLAIM, "worker-b", BEGAN, "1", preserve=False)._replace(
            sequel=Sequel(ends_steps=True, is_implied=True)
        ),
    ],
)
def test_an_outcome_arrives_as_it_is(outcome: Outcome) -> None:
    assert read_outcome(write_outcome(outcome), CLAIM) == (outcome, None)


@pytest.mark.parametrize("settled", [True, False])
def test_a_task_process_tells_whether_it_has_settled_a_job(settled: bool) -> None:
    outcome = outcomes.finished(CLAIM, "worker-b", BEGAN, '"x"', preserve=True)
    assert read_outcome(write_outcome(outcome, settled=settled), CLAIM) == (outcome, settled)


def test_an_outcome_belongs_to_the_job_that_was_sent() -> None:
    other = CLAIM._replace(job_id=99, token=1, queue_name="other", rank=0, concurrency_key=None)
    said = write_outcome(outcomes.finished(other, "worker-b", BEGAN, "1", preserve=True))
    outcome, _ = read_outcome(said, CLAIM)
    assert (outcome.job_id, outcome.token, outcome.queue_name) == (17, CLAIM.token, "mail é\ud800")
    assert (outcome.rank, outcome.concurrency_key) == (-3, "key")


@pytest.mark.parametrize(
    "said",
    [
        "",
        "no JSON",
        "[]",
        "{}",
        '{"ending": "sabotaged"}',
        '{"ending": "finished", "job_id": 1}',
        '{"ending": "finished", "heir": [1, 2]}',
        '{"ending": "finished", "return_value": 5}',
        '{"ending": "finished", "started_at": "yesterday"}',
        '{"ending": "finished", "started_at": 5}',
        '{"ending": "finished", "settled": 1}',
        '{"ending": "retried", "delay": NaN}',
        '{"ending": "retried", "delay": "5"}',
        json.dumps({"ending": "finished", "surprise": 1}),
        json.dumps({"ending": "retried", "sleeps": [["a", 0]]}),
        json.dumps({"ending": "retried", "sleeps": [["a", 0, 17]]}),
        json.dumps({"ending": "retried", "sleeps": [["a", -1, "17"]]}),
        json.dumps({"ending": "retried", "sleeps": [["a", 2**31, "17"]]}),
        json.dumps({"ending": "retried", "sleeps": [["a" * 256, 0, "17"]]}),
        json.dumps({"ending": "retried", "sleeps": [["\0", 0, "17"]]}),
    ],
)
def test_what_is_no_outcome_is_refused(said: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_outcome(said.encode(), CLAIM)


def test_frames_arrive_one_by_one(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    for data in (b"", b"one", b"\0" * 1000):
        Frames(ours, 0).send(data)
    ours.close()
    frames = Frames(theirs, 1000)
    assert [frames.receive() for _ in range(4)] == [b"", b"one", b"\0" * 1000, None]


def test_a_frame_that_is_too_long_is_refused_unread(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    Frames(ours, 0).send(b"12345")
    with pytest.raises(ValueError, match="a frame of 5 bytes, where at most 4 may come"):
        Frames(theirs, 4).receive()


class TestTheEndOfATaskProcess:
    """Which of two it is decides whether its job is charged."""

    def test_before_it_was_sent_a_job(self, pair: tuple[socket.socket, socket.socket]) -> None:
        ours, theirs = pair
        theirs.close()
        with pytest.raises(NotStarted):
            TaskProcess(1, ours, 100).call(b"job")

    def test_before_it_has_received_the_job(
        self, pair: tuple[socket.socket, socket.socket]
    ) -> None:
        ours, theirs = pair
        ours.sendall(b"\0\0")  # What is unread when the system closes the socket of the process.
        theirs.recv(1)
        theirs.close()
        with pytest.raises(NotStarted):
            TaskProcess(1, ours, 100).call(b"job")

    def test_after_a_farewell(self, pair: tuple[socket.socket, socket.socket]) -> None:
        ours, theirs = pair
        Frames(theirs, 100).send(b"")
        with pytest.raises(NotStarted):
            TaskProcess(1, ours, 100).call(b"job")

    def test_after_it_has_received_the_job(self, pair: tuple[socket.socket, socket.socket]) -> None:
        ours, theirs = pair
        process = TaskProcess(1, ours, 100)
        theirs.shutdown(socket.SHUT_WR)  # Nothing is left unread.
        with pytest.raises(EndedAtWork):
            process.call(b"job")

    def test_after_half_an_outcome(self, pair: tuple[socket.socket, socket.socket]) -> None:
        ours, theirs = pair
        theirs.sendall(b"\0\0\0\0\0\0\0\x05abc")
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(EndedAtWork):
            TaskProcess(1, ours, 100).call(b"job")

    def test_after_an_outcome_that_is_too_long(
        self, pair: tuple[socket.socket, socket.socket]
    ) -> None:
        ours, theirs = pair
        Frames(theirs, 100).send(b"x" * 101)
        with pytest.raises(EndedAtWork, match="a frame of 101 bytes"):
            TaskProcess(1, ours, 100).call(b"job")


class EndingNursery:
    """Forks processes that end as soon as they have received a job, and is lost then."""

    def __init__(self, *, closing: bool) -> None:
        self.closing = closing
        self._ends: list[socket.socket] = []

    def fork(self) -> tuple[int, socket.socket]:
        ours, theirs = socket.socketpair()
        theirs.shutdown(socket.SHUT_WR)
        self._ends.append(theirs)
        return 1, ours

    def reap(self, pid: int) -> int:
        self._ends.pop().close()
        raise NurseryLost


@pytest.mark.parametrize("closing", [False, True])
def test_a_process_that_the_worker_itself_has_ended_charges_nothing(closing: bool) -> None:
    nursery: Any = EndingNursery(closing=closing)
    executor = ProcessExecutor(Executor("worker-b", DatabaseClock()), nursery)
    claim = CLAIM._replace(task_path=noop.module_path, attempts=0, max_attempts=1)
    outcome = executor.run(claim, noop).outcome
    if closing:
        assert outcome == outcomes.released(claim)
    else:
        assert outcome.ending is Ending.FAILED
        assert outcome.exception_class == "steady_queue_core.errors.ProcessExitError"
        assert outcome.message == (
            "The task process (pid 1) of worker-b ended while it was running this job."
        )


def test_a_job_that_is_to_start_once_is_not_given_back_by_who_has_ended_its_process() -> None:
    nursery: Any = EndingNursery(closing=True)
    executor = ProcessExecutor(Executor("worker-b", DatabaseClock()), nursery)
    claim = CLAIM._replace(
        task_path=noop.module_path, attempts=0, max_attempts=1,
        metadata=JobMetadata(delivery="at_most_once").text(),
    )  # fmt: skip
    outcome = executor.run(claim, noop).outcome
    assert outcome.ending is Ending.FAILED
    assert outcome.exception_class == "steady_queue_core.errors.NotRepeatedError"


def test_every_ending_can_be_sent() -> None:
    for ending in Ending:
        outcome = outcomes.released(CLAIM)._replace(ending=ending)
        assert read_outcome(write_outcome(outcome), CLAIM)[0].ending is ending
