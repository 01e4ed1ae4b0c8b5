"""What a supervisor passes to the one that takes its place by ``exec``: its children, by their
descriptors, and its rows in the databases."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..base.journal import RunJournal
from .forks import ForkedProcess
from .invocation import PASSED_ON, Invocation
from .managed_process import ManagedProcess, ProcessSpec

#: The variable that names the descriptor of the passed state, and the pid of the process.
VARIABLE = f"{PASSED_ON}HANDOVER"


@dataclass(frozen=True)
class PassedChild:
    """A child, as its present supervisor knows it."""

    kind: str
    description: str
    capacity: int
    registers: bool
    name: str
    pid: int
    report_pipe: int
    journal: int
    journal_path: str | None
    is_ready: bool
    is_at_work: bool
    #: Until when it has to end its tasks, on the monotonic clock.
    drains_until: float | None
    #: When to kill it, on the same clock.
    kill_at: float | None

    @classmethod
    def of(cls, child: ForkedProcess) -> PassedChild:
        """Describe a child, with a new descriptor of its journal. Raises ``OSError``."""
        spec, path = child.spec, child.journal.path
        return cls(
            kind=spec.kind,
            description=spec.description,
            capacity=spec.capacity,
            registers=spec.registers,
            name=child.name,
            pid=child.pid,
            report_pipe=child.report_pipe,
            journal=child.journal.open(),
            journal_path=None if path is None else str(path),
            is_ready=child.ready_at is not None,
            is_at_work=child.is_at_work,
            drains_until=child.drains_until,
            kill_at=child.kill_at,
        )

    def adopt(self) -> ForkedProcess:
        """Return the child, which is to have no successor. Raises ``OSError``."""
        path = None if self.journal_path is None else Path(self.journal_path)
        child = ForkedProcess(
            ProcessSpec(self.kind, self.description, self.capacity, registers=self.registers),
            self.name,
            self.pid,
            RunJournal.adopt(self.journal, path),
            report_pipe=self.report_pipe,
        )
        child.is_retiring = True
        child.ready_at = child.seen_at if self.is_ready else None
        child.is_at_work, child.kill_at = self.is_at_work, self.kill_at
        child.drains_until = self.drains_until
        return child


@dataclass(frozen=True)
class PassedFleet:
    """The processes that serve one database, as their present supervisor knows them."""

    using: str
    #: The name of the supervisor there, and the id of its row.
    name: str
    process_id: int
    children: list[PassedChild]
    #: Ids of the processes that it has rescued of late.
    rescued: list[int] = field(default_factory=list)

    @classmethod
    def read(cls, state: dict[str, Any]) -> PassedFleet:
        """Read what ``asdict`` has made of it."""
        children = [PassedChild(**each) for each in state.pop("children")]
        return cls(**state, children=children)


@dataclass(frozen=True)
class Handover:
    """The state of a supervisor that goes on in the same process, with new code."""

    fleets: list[PassedFleet]
    #: Path and descriptor of its pidfile.
    pidfile: tuple[str, int] | None = None
    #: The listening socket of its probes.
    probe_socket: int | None = None
    #: Whether it had a terminal when it was first started.
    had_terminal: bool = False
    #: Whether another restart was asked for meanwhile.
    is_overtaken: bool = False

    def execute(self, invocation: Invocation) -> None:
        """Replace this process. Raises ``OSError`` if that fails; nothing has changed then."""
        with tempfile.TemporaryFile() as file, self._inheritable(file.fileno()):
            file.write(json.dumps(asdict(self)).encode())
            file.flush()
            os.lseek(file.fileno(), 0, os.SEEK_SET)
            invocation.execute(handover=f"{file.fileno()}:{os.getpid()}")

    @classmethod
    def take(cls) -> Handover | None:
        """Return what the former supervisor in this process has passed on, once."""
        descriptor, _, pid = os.environ.pop(VARIABLE, "").partition(":")
        if pid != str(os.getpid()):
            return None  # Of the process that started us.
        with open(int(descriptor), encoding="utf-8") as file:
            state = json.load(file)
        fleets = [PassedFleet.read(each) for each in state.pop("fleets")]
        found = cls(**state, fleets=fleets)
        for each in found._descriptors():
            os.set_inheritable(each, False)
        return found

    @property
    def children(self) -> list[PassedChild]:
        """The children of all fleets."""
        return [child for fleet in self.fleets for child in fleet.children]

    def _descriptors(self) -> Iterator[int]:
        for child in self.children:
            yield child.report_pipe
            yield child.journal
        if self.pidfile is not None:
            yield self.pidfile[1]
        if self.probe_socket is not None:
            yield self.probe_socket

    @contextmanager
    def _inheritable(self, state: int) -> Iterator[None]:
        descriptors = [state, *self._descriptors()]
        _set_inheritable(descriptors, True)
        try:
            yield
        finally:
            _set_inheritable(descriptors, False)
            for child in self.children:
                with suppress(OSError):
                    os.close(child.journal)


def passed(children: Iterable[ManagedProcess]) -> list[PassedChild]:
    """Describe children, with descriptors of their own. Raises ``OSError``."""
    found: list[PassedChild] = []
    try:
        for child in children:
            assert isinstance(child, ForkedProcess)
            found.append(PassedChild.of(child))
    except OSError:
        for each in found:
            os.close(each.journal)
        raise
    return found


def _set_inheritable(descriptors: Iterable[int], inheritable: bool) -> None:
    for each in descriptors:
        os.set_inheritable(each, inheritable)
