"""What the operating system knows about processes and this host, and their titles in ``ps``."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

from ...printable import printable

#: Where Linux says which control group a process is in, where these are, and what it counts.
CGROUP, CGROUPS, VMSTAT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"), Path("/proc/vmstat")
#: Seconds between two looks for processes killed for want of memory.
KILLS_INTERVAL = 10.0

PR_SET_PDEATHSIG = 1
#: Where the system lists its processes.
PROC = "/proc"


def lease_clock() -> float:
    """Return seconds of a clock that also runs while the host, or this process, is suspended."""
    return time.clock_gettime(_LEASE_CLOCK) if _LEASE_CLOCK is not None else time.monotonic()


_LEASE_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def user_id() -> int:
    """Return the effective user id, or 0 where users have no numbers."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


def is_owned(found: os.stat_result) -> bool:
    """Whether a file or folder belongs to our user, as far as the system knows."""
    return found.st_uid == user_id()


def is_private(found: os.stat_result) -> bool:
    """Whether nobody else may write to a file or folder, as far as the system knows."""
    return not hasattr(os, "geteuid") or not found.st_mode & 0o022


@cache
def host_id() -> str | None:
    """Return an id of this boot of this host and of our pid namespace, or ``None`` where the
    system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return None


def start_time(pid: int) -> str | None:
    """Return the start time of a process in the system's own units, or ``None`` if it cannot be
    seen. Together with the pid it identifies the process even after the pid was reused."""
    status = _status(pid)
    return status[19] if status else None


def has_ended(pid: int, started: str | None = None) -> bool:
    """Whether a process has certainly ended: the one with this start time, or without one
    whichever process has this pid. Reliable only where ``host_id`` is known.

    A process that cannot be seen may live: the system may hide other users' processes.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass  # Another user's process, or a pid that no process can have.
    status = _status(pid)
    if status is None:
        return False
    return status[0] in ("Z", "X") or started not in (None, status[19])


def _status(pid: int) -> list[str] | None:
    """Return the fields of ``/proc/PID/stat`` from the state on; its start time is field 19."""
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:
            # The field before is the program's name: in parentheses, with any content. The system
            # cuts it after 15 bytes, which may be inside of a letter.
            return file.read().rpartition(b")")[2].decode("ascii").split()
    except OSError:
        return None


def await_thread_exit(native_id: int | None) -> None:
    """Wait until the system, too, has removed a thread that has ended for Python."""
    for _ in range(100):
        if not os.path.exists(f"/proc/self/task/{native_id}"):
            return
        time.sleep(0.001)


def wakeups_of(pid: int, thread: int) -> int | None:
    """Return how often a thread of a process has waited and gone on, or ``None`` if unknown."""
    try:
        with open(f"{PROC}/{pid}/task/{thread}/status", "rb") as file:
            for line in file:
                if line.startswith(b"voluntary_ctxt_switches:"):
                    return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return None


def waits_for_lock(pid: int, thread: int) -> bool:
    """Return whether a thread of a process waits for a lock, as far as the system tells."""
    try:
        with open(f"{PROC}/{pid}/task/{thread}/wchan", "rb") as file:
            return file.read().startswith(b"futex")
    except OSError:
        return False


def resident_bytes() -> int:
    """Return how much memory this process occupies, with what it shares; 0 where the system does
    not tell, see ``tells_memory``."""
    try:
        with open(f"{PROC}/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0


def tells_memory() -> bool:
    """Whether the system tells how much memory a process occupies."""
    return resident_bytes() > 0


def processors() -> set[int] | None:
    """Return the processors that this process may use, or ``None`` if the system cannot restrict
    it to some."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else None


def use_processors(numbers: Iterable[int]) -> None:
    """Restrict this process, which has one thread, and its children to some processors. Raises
    ``OSError``."""
    os.sched_setaffinity(0, numbers)


def signal_on_parent_death(parent: int, signum: int = signal.SIGTERM) -> bool:
    """Ask the system to send us ``signum`` when our parent dies; return ``False`` if it is dead
    already."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signum, 0, 0, 0)
    return os.getppid() == parent


def set_title(kind: str, activity: str) -> None:
    """Set the process title that ``ps`` and ``top`` show, if setproctitle is installed."""
    if (setter := _title_setter()) is not None:
        setter(
            printable(f"steady-queue {kind}: {activity}" if activity else f"steady-queue {kind}")
        )


@cache
def _title_setter() -> Callable[[str], object] | None:
    try:
        setter: Callable[[str], object] = import_module("setproctitle").setproctitle
    except ImportError:
        return None
    return setter


class MemoryKills:
    """Remembers how many processes the system had killed for want of memory a short while ago, at
    least one look and at most two."""

    def __init__(self) -> None:
        self._before = self._latest = memory_kills()
        self._next = time.monotonic() + KILLS_INTERVAL

    def look(self) -> None:
        """Count, if that is due."""
        if time.monotonic() >= self._next:
            self._before, self._latest = self._latest, memory_kills()
            self._next = time.monotonic() + KILLS_INTERVAL

    @property
    def are_recent(self) -> bool:
        """Whether there was one of late."""
        return memory_kills() > self._before


def memory_kills() -> int:
    """Return how many processes of our control group, or else of the host, the system has killed
    for want of memory; 0 where it does not tell."""
    for file in (_group_file(), VMSTAT):
        with suppress(OSError, ValueError):
            for line in file.read_text().splitlines():
                name, _, number = line.partition(" ")
                if name == "oom_kill":
                    return int(number)
    return 0


def _group_file() -> Path:
    with suppress(OSError, ValueError):
        for line in CGROUP.read_text().splitlines():
            if line.startswith("0::/"):
                return CGROUPS / line.removeprefix("0::/") / "memory.events"
    return CGROUPS / "memory.events"
