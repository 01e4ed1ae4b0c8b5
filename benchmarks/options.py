"""The options of one run: measures, durations, durability."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Options:
    """The settings of one run of the harness; `--quick` is another set of defaults."""

    rounds: int = 3
    """How often every competitor is measured, in turn."""
    jobs: int = 20_000
    """Jobs in the queue when a drain begins."""
    limit: float = 15.0
    """Seconds after which a drain or a loop that enqueues is cut off: its rate so far counts."""
    samples: int = 200
    """Jobs enqueued one at a time to measure the latency."""
    idle: float = 10.0
    """Seconds over which the CPU time of idle workers is taken."""
    enqueued: int = 2_000
    """Jobs enqueued one by one; ten times as many in bulk."""
    processes: int = 2
    """Worker processes of each competitor."""
    threads: int = 3
    """Threads in each worker process, where the competitor has them."""
    poll: float = 0.001
    """Seconds between two looks at the queue, for competitors that can be told."""
    synchronous: str = "NORMAL"
    """`PRAGMA synchronous` of every competitor: NORMAL or FULL."""
    durable: bool = True
    """Whether a private server keeps in a power failure what it has committed."""
    database: str = "sqlite"
    """The database that every competitor runs on."""
    mysql_driver: str = "mysqlclient"
    """The driver of all competitors for MySQL and MariaDB: mysqlclient or connector."""
    directory: Path
    """Where the throw-away projects and their databases are made."""
    python: str
    """The interpreter that the virtual environments are made with."""


QUICK = {
    "rounds": 1,
    "jobs": 3_000,
    "limit": 1.2,
    "samples": 15,
    "idle": 1.0,
    "enqueued": 200,
}
"""The options that `--quick` changes: every measure once and briefly, to test the harness."""
