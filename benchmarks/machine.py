"""Properties of the machine that matter for the figures, and none that identify it."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from pathlib import Path


def keep_to_cores(count: int) -> int:
    """Run this process and all it starts on at most ``count`` cores; return how many there are."""
    usable = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, usable[:count])
    return min(count, len(usable))


def describe(directory: Path, python: str) -> dict[str, object]:
    """Return the machine's properties that the figures depend on."""
    code = "import platform, sqlite3; print(platform.python_version(), sqlite3.sqlite_version)"
    version, sqlite = subprocess.run(
        [python, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)),
        "python": version,
        "sqlite": sqlite,
        "fdatasync_ms": round(_fdatasync_ms(directory), 3),
        "load_before": round(os.getloadavg()[0], 2),
    }


def _fdatasync_ms(directory: Path) -> float:
    """Return the time of a durable page write, the lower bound of a FULL commit."""
    path = directory / "fdatasync"
    times = []
    with path.open("wb", buffering=0) as file:
        for _ in range(50):
            file.write(b"x" * 4096)
            begin = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begin)
    path.unlink()
    return statistics.median(times) * 1000
