"""What a worker makes of the answers of its nursery."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from threading import Lock

import pytest

from steady_queue_core.processes.worker.nursery import Nursery, NurseryLost
from steady_queue_core.processes.worker.nursery_process import ANSWER
from steady_queue_core.processes.worker.task_process import EndedAtWork, NotStarted, TaskProcess


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_a_process_without_a_descriptor_is_none(pair: tuple[socket.socket, socket.socket]) -> None:
    nursery = object.__new__(Nursery)
    nursery._lock = Lock()
    nursery._control, theirs = pair
    # The system leaves it out where there is no room for it.
    theirs.sendall(ANSWER.pack(1234))
    with pytest.raises(NurseryLost, match="no descriptor"):
        nursery.fork()


def test_a_job_that_was_sent_is_not_taken_for_one_that_was_not(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    process = TaskProcess(1234, ours, 100)
    ours.settimeout(0.05)
    with pytest.raises(EndedAtWork):
        process.call(b"a job")
    assert theirs.recv(100).endswith(b"a job")
    theirs.close()
    with pytest.raises(NotStarted):
        process.call(b"another one")
