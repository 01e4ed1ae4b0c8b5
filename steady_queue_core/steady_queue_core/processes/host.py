"""What the operating system tells of a process and of this host."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress
from functools import cache

PR_SET_PDEATHSIG = 1


def lease_clock() -> float:
    """Return seconds that also pass while the host, or this process, is suspended."""
    return time.clock_gettime(_LEASE_CLOCK) if _LEASE_CLOCK is not None else time.monotonic()


_LEASE_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def user_id() -> int:
    """Return the user that we act as; where users have no numbers, 0."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


def owns(found: os.stat_result) -> bool:
    """Whether a file or folder is our user's, as far as the system tells."""
    return found.st_uid == user_id()


def is_private(found: os.stat_result) -> bool:
    """Whether nobody else may write to it, as far as the system tells."""
    return not hasattr(os, "geteuid") or not found.st_mode & 0o022


@cache
def identity() -> str | None:
    """Return what tells this boot of this host, and this view of its processes, from any other;
    ``None`` where the system does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return None


def birth(pid: int) -> str | None:
    """Return the start time of process ``pid`` in the system's own units; ``None``: no such
    process, or a zombie. With the pid it names a process that no later one can be taken for."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            # The second field is the program's name, which may hold anything but is in brackets.
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else fields[19]


def outlast_thread(native_id: int | None) -> None:
    """Wait until a thread that Python has done with is none to the system any more, either."""
    for _ in range(100):
        if not os.path.exists(f"/proc/self/task/{native_id}"):
            return
        time.sleep(0.001)


def follow_parent(parent: int, signum: int = signal.SIGTERM) -> bool:
    """Have the system send us ``signum`` when our parent dies; ``False``: it is dead already."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signum, 0, 0, 0)
    return os.getppid() == parent
