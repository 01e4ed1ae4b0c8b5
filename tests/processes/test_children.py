"""What a supervisor does when the system has no room for another process."""

from __future__ import annotations

import errno
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from steady_queue_core.configuration import Configuration
from steady_queue_core.processes.child import Role
from steady_queue_core.processes.children import Children
from steady_queue_core.processes.dispatcher import Dispatcher
from steady_queue_core.processes.forks import Forks
from steady_queue_core.processes.restarts import REFUSAL_PAUSE

from . import proc


def refuse() -> int:
    raise OSError(errno.EAGAIN, "no room")


def pipes() -> list[str]:
    """Return the pipes that this process has open."""
    links = proc.open_files(os.getpid()).values()
    return sorted(link for link in links if link.startswith("pipe:"))


def test_a_fork_that_the_system_refuses_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    options = Configuration.Options(state_directory=tmp_path).resolve()
    children = Children(options, Forks(options, "default"))
    role = Role(
        kind="worker",
        description="none",
        slots=1,
        build=partial(Dispatcher, settings=options.dispatchers[0]),
    )
    before = pipes()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    monkeypatch.setattr(os, "fork", refuse)
    children.start(role, None)
    assert not children
    assert "Could not start a worker" in caplog.text
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == blocked
    assert pipes() == before
    assert list(tmp_path.iterdir()) == []
    assert children.restarts.due() == []
    assert REFUSAL_PAUSE - 1 < children.restarts.pause <= REFUSAL_PAUSE
