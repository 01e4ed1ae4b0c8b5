"""The processes that a supervisor runs, and the lines that it prints of them when it starts."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import django

from ... import __version__
from ...configuration import Configuration, ResolvedOptions
from ...configured_backends import recurring_tasks_on
from ...dialects import DialectInfo
from ..base.shared_heartbeat import SharedHeartbeat
from ..dispatcher.dispatcher import Dispatcher
from ..probe.probe import Metrics, Probe
from ..scheduler.scheduler import Scheduler
from ..worker.prefetch import capacity
from ..worker.worker import Worker
from .managed_process import ProcessSpec

#: The values of ``--only``, and the kind of process that each selects.
KINDS = {"work": Worker.kind, "dispatch": Dispatcher.kind, "schedule": Scheduler.kind}


def specs(
    options: ResolvedOptions, using: str, *, scheduling: bool = True, one_each: bool = False
) -> Iterator[ProcessSpec]:
    """Yield a spec for every process that ``options`` configure on the database ``using``.

    With ``one_each``, each worker configuration gets one, whatever its ``processes``.
    """
    for dispatcher in options.dispatchers:
        yield ProcessSpec(
            kind=Dispatcher.kind,
            description=f"every {dispatcher.polling_interval.total_seconds():g} s, "
            f"batches of {dispatcher.batch_size}",
            capacity=0,
            build=partial(Dispatcher, settings=dispatcher),
        )
    tasks = recurring_tasks_on(using)
    if scheduling and (tasks or options.scheduler.dynamic_tasks_enabled):
        yield ProcessSpec(
            kind=Scheduler.kind,
            description=_describe_schedule(len(tasks), options.scheduler),
            capacity=0,
            build=partial(Scheduler, settings=options.scheduler),
        )
    for settings in options.workers:
        for _ in range(1 if one_each else settings.processes):
            yield ProcessSpec(
                kind=Worker.kind,
                description=f"queues {', '.join(settings.queues)}; {_describe_size(settings)}",
                capacity=capacity(settings),
                build=partial(Worker, settings=settings),
            )


def probe_spec(
    options: ResolvedOptions,
    descriptor: int,
    heartbeat: SharedHeartbeat,
    databases: Sequence[str],
    metrics: Metrics | None,
) -> ProcessSpec:
    """Return the spec of the probe, which answers for ``databases`` on a listening socket."""
    where = f"{options.probe_address}, port {options.probe_port}"
    return ProcessSpec(
        kind=Probe.kind,
        description=f"/livez, /readyz and /metrics at {where}",
        capacity=0,
        build=partial(
            Probe, descriptor=descriptor, heartbeat=heartbeat, databases=databases, metrics=metrics
        ),
        registers=False,
        descriptors=frozenset([descriptor]),
    )


def _describe_size(settings: Configuration.Worker) -> str:
    unit, units = "thread", "threads"
    if settings.runs_processes:
        unit, units = "task process", "task processes"
    return f"{settings.threads} {unit if settings.threads == 1 else units}"


def _describe_schedule(tasks: int, settings: Configuration.Scheduler) -> str:
    static = f"{tasks} recurring task{'' if tasks == 1 else 's'}"
    if not settings.dynamic_tasks_enabled:
        return static
    interval = settings.polling_interval.total_seconds()
    return f"{static}; looks every {interval:g} s for those added at run time"


class WorkerCount:
    """Changes how many processes the first kind of worker has, until the supervisor starts anew."""

    def __init__(self, specs: list[ProcessSpec]) -> None:
        """``specs``: of all processes; changed in place."""
        self._specs = specs

    def add(self) -> ProcessSpec | None:
        """Return the spec of one process more; ``None``: there are no workers."""
        present = self._present
        if not present:
            return None
        spec = replace(present[0])
        self._specs.append(spec)
        return spec

    def remove(self) -> ProcessSpec | None:
        """Return the spec of the process that is too many; ``None``: there is but one."""
        present = self._present
        if len(present) < 2:
            return None
        # By identity: they are all equal.
        self._specs[:] = [spec for spec in self._specs if spec is not present[-1]]
        return present[-1]

    @property
    def _present(self) -> list[ProcessSpec]:
        workers = [spec for spec in self._specs if spec.kind == Worker.kind]
        return [spec for spec in workers if spec.description == workers[0].description]


def banner_lines(
    using: str,
    dialect: DialectInfo,
    changes: Iterable[str],
    specs: Iterable[ProcessSpec],
) -> Iterator[str]:
    """Yield the versions, the database, what the dialect has changed, whether it
    wakes idle workers, and the processes."""
    yield (
        f"Steady Queue {__version__} · {dialect.display_name} (database {using!r}, "
        f"dialect {dialect.name}) · Python {platform.python_version()} · "
        f"Django {django.get_version()}"
    )
    for change in changes:
        yield f"  {dialect.name}: {change}"
    if not dialect.has_wakeup:
        yield f"  {dialect.name}: no wake-ups here: idle workers poll, every 'polling_interval'"
    for spec in specs:
        yield f"  {spec.kind}: {spec.description}"


def last_line(*, drains: bool) -> str:
    """Return what ends the queue."""
    return "  Stops when nothing is left to run." if drains else "  Stop with Ctrl-C or TERM."
