"""Whether the system has killed processes for want of memory."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

#: Where Linux says which control group a process is in, where these are, and what it counts.
CGROUP, CGROUPS, VMSTAT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"), Path("/proc/vmstat")
#: Seconds between two looks.
INTERVAL = 10.0


class MemoryKills:
    """Remembers how many there were a short while ago, at least one look and at most two."""

    def __init__(self) -> None:
        self._before = self._latest = memory_kills()
        self._next = time.monotonic() + INTERVAL

    def look(self) -> None:
        """Count, if that is due."""
        if time.monotonic() >= self._next:
            self._before, self._latest = self._latest, memory_kills()
            self._next = time.monotonic() + INTERVAL

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
