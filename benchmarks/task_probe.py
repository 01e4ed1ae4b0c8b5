"""The body of the benchmark's tasks: leave a mark at next to no cost.

`mark` counts the job in a file that is mapped into memory, one for each process, with the times of
the first and the last job. It takes no lock between processes and writes nothing to disk: 1 to 2 us
a job, the same for every competitor. `stamp` appends one line to a file that all processes share.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks import trace

LAYOUT = struct.Struct("=11q")
"""Jobs; time of the first and of the last; statements and commits at the first; and, at the last
job that came after a statement: jobs before it, statements, commits; CPU time of the process at the
first job and at the last; sum of the jobs' numbers. All times in nanoseconds."""


class _Marks:
    """The marks of one process."""

    def __init__(self) -> None:
        self.jobs = 0
        self.total = 0
        self.lock = threading.Lock()
        self.first = (0, 0, 0)
        self.batch = (0, 0, 0)
        self.first_cpu = 0
        self.map: mmap.mmap | None = None

    def open(self) -> mmap.mmap:
        path = Path(os.environ["BENCHMARK_EFFECTS"]) / f"{os.getpid()}.marks"
        with path.open("w+b") as file:
            file.truncate(LAYOUT.size)
            self.map = mmap.mmap(file.fileno(), LAYOUT.size)
        return self.map

    def mark(self, number: int) -> int:
        with self.lock:
            now, cpu = time.monotonic_ns(), time.process_time_ns()
            map_ = self.map or self.open()
            statements, commits = trace.counts.statements, trace.counts.commits
            if not self.jobs:
                self.first = (now, statements, commits)
                self.first_cpu = cpu
            if statements != self.batch[1]:
                self.batch = (self.jobs, statements, commits)
            self.jobs += 1
            self.total += number
            began, *counts = self.first
            last = (self.first_cpu, cpu, self.total)
            LAYOUT.pack_into(map_, 0, self.jobs, began, now, *counts, *self.batch, *last)
            return self.jobs


_marks = _Marks()


def _forget() -> None:
    """Make a forked child count in a file of its own."""
    global _marks
    _marks = _Marks()


os.register_at_fork(after_in_child=_forget)


def mark(number: int) -> int:
    """Count the job of this number; return how many this process has counted."""
    return _marks.mark(number)


def stamp(sample: int) -> None:
    """Record that job number ``sample`` starts now."""
    now = time.monotonic_ns()
    path = Path(os.environ["BENCHMARK_EFFECTS"]) / "stamps"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{sample} {now}\n".encode())
    finally:
        os.close(descriptor)


@dataclass(frozen=True, kw_only=True)
class Effects:
    """The marks of all processes together."""

    jobs: int
    total: int
    """The sum of their numbers: what the tasks were given."""
    first_ns: int
    last_ns: int
    processes: int
    statements: float | None
    """Statements for each job in the worker processes; None: not counted, or too few jobs."""
    commits: float | None
    cpu_us: float
    """CPU time of the processes that ran them, in microseconds for each job."""


def effects(directory: Path) -> Effects:
    """Read the marks of all processes."""
    rows = []
    for path in directory.glob("*.marks"):
        content = path.read_bytes()
        if len(content) == LAYOUT.size:
            rows.append(LAYOUT.unpack(content))
    rows = [row for row in rows if row[0]]
    # Whole batches only, from the first job of one to the first job of another: without start-up,
    # without an empty queue, and without half of a batch's statements.
    steps = sum(row[5] for row in rows)
    later = sum(row[0] - 1 for row in rows)
    return Effects(
        jobs=sum(row[0] for row in rows),
        total=sum(row[10] for row in rows),
        cpu_us=sum(row[9] - row[8] for row in rows) / 1000 / later if later else 0.0,
        first_ns=min((row[1] for row in rows), default=0),
        last_ns=max((row[2] for row in rows), default=0),
        processes=len(rows),
        statements=sum(row[6] - row[3] for row in rows if row[5]) / steps if steps else None,
        commits=sum(row[7] - row[4] for row in rows if row[5]) / steps if steps else None,
    )


def stamps(directory: Path) -> dict[int, int]:
    """Return when each job of `stamp` started first."""
    path = directory / "stamps"
    if not path.exists():
        return {}
    found: dict[int, int] = {}
    for line in path.read_text().splitlines():
        sample, _, moment = line.partition(" ")
        found.setdefault(int(sample), int(moment))
    return found
