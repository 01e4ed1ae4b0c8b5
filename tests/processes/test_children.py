"""What a supervisor does when the system has no room for another child, or one hangs."""

from __future__ import annotations

import errno
import gc
import logging
import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from steady_queue_core.configuration import Configuration
from steady_queue_core.errors import ThreadTerminatedError
from steady_queue_core.processes.dispatcher.dispatcher import Dispatcher
from steady_queue_core.processes.supervisor.forks import ForkLauncher
from steady_queue_core.processes.supervisor.managed_process import ProcessSpec
from steady_queue_core.processes.supervisor.managed_processes import ManagedProcesses
from steady_queue_core.processes.supervisor.restarts import START_RETRY_PAUSE
from steady_queue_core.processes.supervisor.threads import ThreadLauncher

from . import proc
from .waiting import wait_for


def refuse() -> int:
    raise OSError(errno.EAGAIN, "no room")


def pipes() -> list[str]:
    """Return the pipes that this process has open."""
    links = proc.open_files(os.getpid()).values()
    return sorted(link for link in links if link.startswith("pipe:"))


def spec_of(options: Any) -> ProcessSpec:
    return ProcessSpec(
        kind="worker",
        description="none",
        capacity=1,
        build=partial(Dispatcher, settings=options.dispatchers[0]),
    )


def test_a_thread_that_python_refuses_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    options = Configuration.Options(state_directory=tmp_path).resolve()
    children = ManagedProcesses(options, "default", ThreadLauncher(list, lambda: None))
    monkeypatch.setattr(Thread, "start", refuse)
    children.start(spec_of(options), None)
    assert not children
    assert "Could not start a worker" in caplog.text
    assert list(tmp_path.iterdir()) == []
    assert START_RETRY_PAUSE - 1 < children.restarts.pause <= START_RETRY_PAUSE


class Stuck:
    """A process that ignores requests to stop."""

    def __init__(self, context: Any) -> None:
        self.released = Event()
        context.stuck = self

    def run(self) -> None:
        self.released.wait(60)


def test_a_thread_that_hangs_is_given_up_and_what_it_ran_is_lost(tmp_path: Path) -> None:
    options = Configuration.Options(state_directory=tmp_path, fork_startup_timeout=0.05).resolve()
    launcher = ThreadLauncher(lambda: children, lambda: None)
    children = ManagedProcesses(options, "default", launcher)
    child: Any = children.start(replace(spec_of(options), build=Stuck), None)
    assert child is not None
    wait_for(lambda: hasattr(child.context, "stuck"), 10)
    child.journal.start(7, 1)
    wait_for(lambda: children.check_health() or child.given_up, 10, "the end of our patience")
    [(ended, how)] = launcher.ended()
    assert (ended, how) == (child, "was given up")
    children.remove(child)
    assert child.journal.snapshot().running == {7}
    error = child.lost_error(how)
    assert isinstance(error, ThreadTerminatedError)
    assert "was given up while it was running this job" in str(error)
    child.context.stuck.released.set()
    child.thread.join(10)
    assert not child.thread.is_alive()
    assert launcher.ended() == []


def test_a_fork_that_the_system_refuses_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    options = Configuration.Options(state_directory=tmp_path).resolve()
    children = ManagedProcesses(options, "default", ForkLauncher(list))
    before = pipes()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    monkeypatch.setattr(os, "fork", refuse)
    children.start(spec_of(options), None)
    assert not children
    assert "Could not start a worker" in caplog.text
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == blocked
    assert pipes() == before
    assert list(tmp_path.iterdir()) == []
    assert children.restarts.take_due() == []
    assert START_RETRY_PAUSE - 1 < children.restarts.pause <= START_RETRY_PAUSE


@pytest.mark.parametrize(
    ("launcher", "refused"),
    [(ForkLauncher(list), "os.pipe"), (ThreadLauncher(list, lambda: None), "socket.socketpair")],
    ids=["fork", "thread"],
)
def test_a_start_without_descriptors_leaves_none_behind(
    launcher: Any, refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OSError(errno.EMFILE, "too many open files")

    options = Configuration.Options(state_directory=tmp_path).resolve()
    children = ManagedProcesses(options, "default", launcher)
    monkeypatch.setattr(refused, refuse)
    logging.disable()  # A record of the error would keep the memory of the journal.
    try:
        children.start(spec_of(options), None)
    finally:
        logging.disable(logging.NOTSET)
    assert not children
    gc.collect()
    opened = proc.open_files(os.getpid()).values()
    assert [path for path in opened if str(tmp_path) in path] == []
    assert list(tmp_path.iterdir()) == []
