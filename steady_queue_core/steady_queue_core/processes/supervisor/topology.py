"""The processes that a supervisor runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ...configuration import Configuration, ResolvedOptions
from ...configured_backends import recurring_tasks_on
from ..base.pulse import Pulse
from ..dispatcher.dispatcher import Dispatcher
from ..probe.probe import Metrics, Probe
from ..scheduler.scheduler import Scheduler
from ..worker.worker import Worker, capacity
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
    where: str, descriptor: int, pulse: Pulse, databases: Sequence[str], metrics: Metrics | None
) -> ProcessSpec:
    """Return the spec of the probe, which answers for ``databases`` on a listening socket;
    ``where``: its address."""
    return ProcessSpec(
        kind=Probe.kind,
        description=f"/livez, /readyz and /metrics at {where}",
        capacity=0,
        build=partial(
            Probe, descriptor=descriptor, pulse=pulse, databases=databases, metrics=metrics
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
