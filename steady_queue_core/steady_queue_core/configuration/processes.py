"""The settings of workers, dispatchers and the scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from .errors import describe
from .queues import contradiction, objection
from .reader import Reader
from .section import Section

#: Bytes; less is meant as another unit.
LEAST_RSS = 1 << 20

EXECUTORS = ("threads", "processes")
"""What runs the tasks of a worker: its own threads and event loop, or child processes."""


@dataclass(frozen=True, kw_only=True, init=False)
class Worker(Section):
    """Worker processes with the same settings."""

    queues: tuple[str, ...]
    """Queues in polling order: exact names, prefixes ``name*``, or ``*`` for all; to leave out
    others ``!name`` and ``!name*``."""
    executor: str
    """``threads`` or ``processes``: where one worker process runs its tasks."""
    threads: int
    """Synchronous tasks that one process runs concurrently; its task processes, if it has those."""
    coroutines: int
    """Coroutine tasks that one process runs concurrently on its event loop."""
    processes: int
    """Number of processes with these settings."""
    polling_interval: timedelta
    """Longest wait between two polls of an idle worker."""
    fresh_connections: bool
    """Whether each task gets new database connections."""
    prefetch: int
    """Most jobs that one process claims in addition to those that it can run at once."""
    recycle_after: int | None
    """Jobs after which the process that runs them is replaced; None: never."""
    recycle_rss: int | None
    """Bytes of resident memory from which on that process is replaced; None: never."""
    cpu_affinity: tuple[int, ...] | None
    """Processors that one process may use, by number; None: all."""

    def __init__(
        self,
        *,
        queues: str | Sequence[str] = ("*",),
        executor: str = "threads",
        threads: int = 3,
        coroutines: int = 100,
        processes: int = 1,
        polling_interval: timedelta | float = timedelta(seconds=0.1),
        fresh_connections: bool = False,
        prefetch: int = 500,
        recycle_after: int | None = None,
        recycle_rss: int | None = None,
        cpu_affinity: Sequence[int] | None = None,
    ) -> None:
        arguments = {
            "queues": queues,
            "executor": executor,
            "threads": threads,
            "coroutines": coroutines,
            "processes": processes,
            "polling_interval": polling_interval,
            "fresh_connections": fresh_connections,
            "prefetch": prefetch,
            "recycle_after": recycle_after,
            "recycle_rss": recycle_rss,
            "cpu_affinity": cpu_affinity,
        }
        self._fill(Reader.for_call("Configuration.Worker", arguments))

    @staticmethod
    def _read(reader: Reader) -> dict[str, object]:
        return {
            "queues": _read_queues(reader),
            "executor": reader.choice("executor", EXECUTORS),
            "threads": reader.integer("threads", least=1),
            "coroutines": reader.integer("coroutines", least=1),
            "processes": reader.integer("processes", least=1),
            "polling_interval": reader.duration("polling_interval"),
            "fresh_connections": reader.flag("fresh_connections"),
            "prefetch": reader.integer("prefetch", least=0, most=10_000),
            "recycle_after": reader.optional_integer("recycle_after", least=1),
            "recycle_rss": reader.optional_integer("recycle_rss", least=LEAST_RSS),
            "cpu_affinity": _read_processors(reader),
        }

    @property
    def runs_processes(self) -> bool:
        """Whether tasks run in task processes."""
        return self.executor == "processes"


def _read_queues(reader: Reader) -> tuple[str, ...]:
    before = len(reader.problems)
    entries = reader.names("queues")
    for entry in entries:
        if reason := objection(entry):
            reader.problems.append(f"{reader.path('queues')}: the entry {describe(entry)} {reason}")
    if len(reader.problems) > before:
        return ()
    if not entries:
        reader.wrong("queues", "at least one queue ('*' for all)")
    if found := contradiction(entries):
        reader.problems.append(f"{reader.path('queues')}: {found}")
    return tuple(dict.fromkeys(entries))


def _read_processors(reader: Reader) -> tuple[int, ...] | None:
    value = reader.values["cpu_affinity"]
    if value is None:
        return None
    numbers = value if isinstance(value, (list, tuple, set, frozenset, range)) else ()
    if numbers and all(type(number) is int and number >= 0 for number in numbers):
        return tuple(sorted(set(numbers)))
    reader.wrong("cpu_affinity", "a list of the numbers of processors, from 0 on, or None")
    return None


@dataclass(frozen=True, kw_only=True, init=False)
class Dispatcher(Section):
    """A process that makes due jobs ready and maintains concurrency limits."""

    polling_interval: timedelta
    """Longest wait between two polls for due jobs."""
    batch_size: int
    """Most jobs to move in one transaction."""
    concurrency_maintenance: bool
    """Whether this dispatcher repairs semaphores and unblocks jobs."""
    concurrency_maintenance_interval: timedelta
    """Time between two maintenance runs."""

    def __init__(
        self,
        *,
        polling_interval: timedelta | float = timedelta(seconds=1),
        batch_size: int = 500,
        concurrency_maintenance: bool = True,
        concurrency_maintenance_interval: timedelta | float = timedelta(seconds=600),
    ) -> None:
        arguments = {
            "polling_interval": polling_interval,
            "batch_size": batch_size,
            "concurrency_maintenance": concurrency_maintenance,
            "concurrency_maintenance_interval": concurrency_maintenance_interval,
        }
        self._fill(Reader.for_call("Configuration.Dispatcher", arguments))

    @staticmethod
    def _read(reader: Reader) -> dict[str, object]:
        return {
            "polling_interval": reader.duration("polling_interval"),
            "batch_size": reader.integer("batch_size", least=1),
            "concurrency_maintenance": reader.flag("concurrency_maintenance"),
            "concurrency_maintenance_interval": reader.duration("concurrency_maintenance_interval"),
        }


@dataclass(frozen=True, kw_only=True, init=False)
class Scheduler(Section):
    """The process that enqueues recurring tasks when they are due."""

    polling_interval: timedelta
    """Longest wait between two polls for recurring tasks that were added at run time."""
    dynamic_tasks_enabled: bool
    """Whether recurring tasks that were added at run time are enqueued as well."""

    def __init__(
        self,
        *,
        polling_interval: timedelta | float = timedelta(seconds=5),
        dynamic_tasks_enabled: bool = False,
    ) -> None:
        arguments = {
            "polling_interval": polling_interval,
            "dynamic_tasks_enabled": dynamic_tasks_enabled,
        }
        self._fill(Reader.for_call("Configuration.Scheduler", arguments))

    @staticmethod
    def _read(reader: Reader) -> dict[str, object]:
        return {
            "polling_interval": reader.duration("polling_interval"),
            "dynamic_tasks_enabled": reader.flag("dynamic_tasks_enabled"),
        }
