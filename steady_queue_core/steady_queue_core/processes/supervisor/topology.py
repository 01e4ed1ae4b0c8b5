"""Which processes a supervisor runs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...configuration import Configuration, ResolvedOptions
from ..dispatcher.dispatcher import Dispatcher
from ..scheduler.mirror import registered_on
from ..scheduler.scheduler import Scheduler
from ..worker.worker import Worker, capacity
from .child import ProcessSpec

#: What ``--only`` names, and the processes that do it.
KINDS = {"work": Worker.kind, "dispatch": Dispatcher.kind, "schedule": Scheduler.kind}


def specs(
    options: ResolvedOptions, using: str, *, scheduling: bool = True, one_each: bool = False
) -> Iterator[ProcessSpec]:
    """Yield a role for every process that ``options`` ask for, on the database ``using``.

    ``one_each``: one for each kind of worker, whatever its ``processes`` say.
    """
    for dispatcher in options.dispatchers:
        yield ProcessSpec(
            kind=Dispatcher.kind,
            description=f"every {dispatcher.polling_interval.total_seconds():g} s, "
            f"batches of {dispatcher.batch_size}",
            slots=0,
            build=partial(Dispatcher, settings=dispatcher),
        )
    tasks = registered_on(using)
    if scheduling and (tasks or options.scheduler.dynamic_tasks_enabled):
        yield ProcessSpec(
            kind=Scheduler.kind,
            description=_agenda(len(tasks), options.scheduler),
            slots=0,
            build=partial(Scheduler, settings=options.scheduler),
        )
    for settings in options.workers:
        for _ in range(1 if one_each else settings.processes):
            yield ProcessSpec(
                kind=Worker.kind,
                description=f"queues {', '.join(settings.queues)}; "
                f"{settings.threads} thread{'s' if settings.threads > 1 else ''}",
                slots=capacity(settings),
                build=partial(Worker, settings=settings),
            )


def _agenda(tasks: int, settings: Configuration.Scheduler) -> str:
    static = f"{tasks} recurring task{'' if tasks == 1 else 's'}"
    if not settings.dynamic_tasks_enabled:
        return static
    interval = settings.polling_interval.total_seconds()
    return f"{static}; looks every {interval:g} s for those added at run time"
