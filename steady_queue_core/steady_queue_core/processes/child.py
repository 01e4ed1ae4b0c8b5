"""Forking a process and being one."""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from ..configuration import ResolvedOptions
from . import host, remains
from .marks import StartMarks, folder_for
from .membership import new_name
from .preparation import close_connections
from .runtime import Runtime
from .signals import STOP_SIGNALS

logger = logging.getLogger("steady_queue.process")


class Actor(Protocol):
    """What runs in a forked process."""

    def run(self) -> None:
        """Work until asked to stop."""


@dataclass(frozen=True)
class Role:
    """A place in the supervisor's team, filled by one process at a time."""

    kind: str
    #: What the process does, in words for people.
    description: str
    #: How many jobs it can hold.
    slots: int
    build: Callable[[Runtime], Actor]


@dataclass
class Child:
    """A forked process, seen from its supervisor."""

    role: Role
    name: str
    pid: int
    marks: StartMarks
    ready_pipe: int
    started_at: float = field(default_factory=time.monotonic)
    #: Until when it must have reported ready, or at least alive.
    deadline: float = 0.0
    ready_at: float | None = None
    #: When it last gave a sign of life, by our own clock.
    seen_at: float = field(default_factory=time.monotonic)
    #: When to kill it: it was declared dead, and may yet wake up and end of itself.
    condemned_until: float | None = None

    def read_reports(self, patience: float) -> None:
        """Take over what the child has reported since."""
        with suppress(BlockingIOError, OSError):
            while report := os.read(self.ready_pipe, 4096):
                self.seen_at = time.monotonic()
                self.deadline = self.seen_at + patience
                if b"r" in report and self.ready_at is None:
                    self.ready_at = time.monotonic()

    def signal(self, signum: int) -> None:
        """Send a signal, if the process is still there."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signum)

    def forget(self) -> None:
        """Give up what the supervisor held for the child. Its marks stay for its recovery."""
        with suppress(OSError):
            os.close(self.ready_pipe)


def fork(
    role: Role,
    options: ResolvedOptions,
    using: str,
    supervisor_id: int | None,
    siblings: list[Child],
) -> Child:
    """Start a process for ``role``. Call it from the main thread, without other threads.

    Raises ``OSError`` when the system has no room for one.
    """
    name = new_name(role.kind)
    marks = StartMarks.create(name, role.slots, folder_for(options.state_directory))
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    parent = os.getpid()
    # A child must not share one; what looks after the processes opens another when it needs it.
    close_connections()
    _flush_output()
    # A signal must reach the parent's handlers or the child's, not the parent's within the child.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        pid = os.fork()
    except OSError:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        os.close(read_end)
        os.close(write_end)
        remains.forget(marks.path)
        raise
    if pid == 0:
        # Whatever happens here must not unwind into the supervisor's code.
        code = 1
        try:
            os.close(read_end)
            for sibling in siblings:
                with suppress(OSError):
                    os.close(sibling.ready_pipe)
            runtime = Runtime(
                options=options,
                using=using,
                name=name,
                parent=parent,
                marks=marks,
                report=lambda process_id: _report(write_end, process_id),
                supervisor_id=supervisor_id,
            )
            code = _be(role, runtime)
        except BaseException:
            logger.critical("%s failed", name, exc_info=True)
        finally:
            with suppress(BaseException):
                logging.shutdown()
                _flush_output()
            os._exit(code)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    os.close(write_end)
    child = Child(role, name, pid, marks, read_end)
    child.deadline = time.monotonic() + options.fork_startup_timeout.total_seconds()
    return child


def _flush_output() -> None:
    # What is buffered at a fork would be written twice.
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _be(role: Role, runtime: Runtime) -> int:
    runtime.install_signals()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    if not host.follow_parent(runtime.parent):
        return 1
    runtime.watch_parent()
    runtime.marks.belong_to(os.getpid())
    random.seed()
    role.build(runtime).run()
    return 0


def _report(descriptor: int, process_id: int | None) -> None:
    with suppress(OSError):
        os.write(descriptor, b"." if process_id is None else b"r")
