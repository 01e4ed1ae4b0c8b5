"""Forking a process and being one."""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from ..configuration import ResolvedOptions
from ..dialects import dialect_for
from . import host
from .marks import StartMarks
from .membership import new_name
from .runtime import Runtime

logger = logging.getLogger("steady_queue.process")

STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT}


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
    """Start a process for ``role``. Call it from the main thread, without other threads."""
    name = new_name(role.kind)
    marks = StartMarks.create(name, role.slots)
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    parent = os.getpid()
    close_connections()
    sys.stdout.flush()
    sys.stderr.flush()
    # A signal must reach the parent's handlers or the child's, not the parent's within the child.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    pid = os.fork()
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
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    os.close(write_end)
    child = Child(role, name, pid, marks, read_end)
    child.deadline = time.monotonic() + options.fork_startup_timeout.total_seconds()
    return child


def close_connections() -> None:
    """Close every connection of the process: none may be carried over a fork."""
    for connection in connections.all(initialized_only=True):
        with suppress(Exception):
            connection.close()
        close_pool = getattr(connection, "close_pool", None)
        if close_pool is not None:
            with suppress(Exception):
                close_pool()


def prepare_connections(using: str, say: Callable[[list[str]], object] = len) -> None:
    """Have every new connection of this process to the queue's database set up by its dialect.

    ``say`` gets the sentences on what was changed. The main thread has other things to look after
    than a lock; tasks run in the other threads.
    """

    def prepare(connection: BaseDatabaseWrapper, **kwargs: object) -> None:
        if connection.alias == using:
            impatient = threading.current_thread() is threading.main_thread()
            say(dialect_for(using).prepare(connection, impatient=impatient))

    connection_created.connect(prepare, weak=False, dispatch_uid="steady_queue_prepare")


def _be(role: Role, runtime: Runtime) -> int:
    runtime.install_signals()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    if not host.follow_parent(runtime.parent):
        return 1
    runtime.watch_parent()
    runtime.marks.belong_to(os.getpid())
    random.seed()
    prepare_connections(runtime.using)
    role.build(runtime).run()
    return 0


def _report(descriptor: int, process_id: int | None) -> None:
    with suppress(OSError):
        os.write(descriptor, b"." if process_id is None else b"r")
