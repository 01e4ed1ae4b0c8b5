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
#: Where the system tells of its processes.
PROC = "/proc"


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
    """Return the start time of process ``pid`` in the system's own units; ``None``: none is to be
    seen. With the pid it names a process that no later one can be taken for."""
    seen = _status(pid)
    return seen[19] if seen else None


def has_ended(pid: int, born: str | None = None) -> bool:
    """Whether it is certain, where ``identity`` is known, that a process has ended: the one that
    was ``born`` then, or else whichever has this pid.

    What cannot be seen may live: the system may hide what other users run.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass  # Another user's, or a pid that no process can have.
    seen = _status(pid)
    if seen is None:
        return False
    return seen[0] in ("Z", "X") or born not in (None, seen[19])


def _status(pid: int) -> list[str] | None:
    """Return what the system tells of a process: its state, and 19 further on when it began."""
    try:
        with open(f"{PROC}/{pid}/stat") as file:
            # The second field is the program's name, which may hold anything but is in brackets.
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


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
