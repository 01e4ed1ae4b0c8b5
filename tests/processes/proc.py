"""What Linux tells of processes, and signals that cannot reach the wrong one."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import NamedTuple


class Stat(NamedTuple):
    """The part of ``/proc/<pid>/stat`` that the tests look at."""

    pid: int
    state: str
    parent: int
    session: int
    birth: int

    @property
    def alive(self) -> bool:
        return self.state not in "ZX"


def stat(pid: int) -> Stat | None:
    """Return what is known of a process; ``None``: there is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Stat(pid, fields[0], int(fields[1]), int(fields[3]), int(fields[19]))


def birth(pid: int) -> int:
    """Return when a process began, to tell it from a later one of its number; -1: it has ended."""
    found = stat(pid)
    return found.birth if found is not None else -1


def everything() -> list[Stat]:
    found = (stat(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [each for each in found if each is not None]


def alive(pid: int) -> bool:
    found = stat(pid)
    return found is not None and found.alive


def is_stopped(pid: int) -> bool:
    found = stat(pid)
    return found is not None and found.state == "T"


def in_session(session: int) -> list[Stat]:
    """Return the living processes of a session."""
    # Their number is a system call; what is left, a file to read, is for few of them.
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    found = [stat(pid) for pid in pids if _session_of(pid) == session]
    return [each for each in found if each is not None and each.alive]


def children(pid: int) -> list[Stat]:
    """Return the living children of a process that are in its session."""
    session = _session_of(pid)
    return [each for each in in_session(session) if each.parent == pid] if session else []


def _session_of(pid: int) -> int:
    """Return the session of a process; 0: there is none."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def send(pid: int, signum: int, birth: int) -> bool:
    """Signal the process that began at ``birth``; ``False``: it has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        found = stat(pid)
        if found is None or found.birth != birth:
            return False
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signum)
            return True
        return False
    finally:
        os.close(descriptor)


def open_files(pid: int) -> dict[int, str]:
    """Return where the descriptors of a process lead."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):
            found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
    return found


def wake_ups(pid: int) -> int:
    """Return how often threads of a process have gone to sleep so far."""
    total = 0
    for name in os.listdir(f"/proc/{pid}/task"):
        with suppress(FileNotFoundError), open(f"/proc/{pid}/task/{name}/status") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt"))
    return total


def processor_time(pid: int) -> float:
    """Return the seconds that a process has spent on a processor so far."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_busy(pid: int) -> bool:
    """Tell whether a thread of a process computes, or would if it had a processor."""
    states = set()
    for name in os.listdir(f"/proc/{pid}/task"):
        with suppress(FileNotFoundError), open(f"/proc/{pid}/task/{name}/stat") as file:
            states.add(file.read().rpartition(")")[2].split()[0])
    return "R" in states


def threads(pid: int) -> int:
    """Return how many threads a process has; 0: it has ended."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except FileNotFoundError:
        return 0
