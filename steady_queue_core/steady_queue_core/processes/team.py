"""Which processes a supervisor runs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..configuration import ResolvedOptions
from . import worker
from .child import Role
from .dispatcher import Dispatcher
from .scheduler import Scheduler
from .schedules import registered_on
from .worker import Worker

#: What ``--only`` names, and the processes that do it.
KINDS = {"work": Worker.kind, "dispatch": Dispatcher.kind, "schedule": Scheduler.kind}


def roles(
    options: ResolvedOptions, using: str, *, scheduling: bool = True, one_each: bool = False
) -> Iterator[Role]:
    """Yield a role for every process that ``options`` ask for, on the database ``using``.

    ``one_each``: one for each kind of worker, whatever its ``processes`` say.
    """
    for dispatcher in options.dispatchers:
        yield Role(
            kind=Dispatcher.kind,
            description=f"every {dispatcher.polling_interval.total_seconds():g} s, "
            f"batches of {dispatcher.batch_size}",
            slots=0,
            build=partial(Dispatcher, settings=dispatcher),
        )
    tasks = registered_on(using)
    if scheduling and tasks:
        yield Role(
            kind=Scheduler.kind,
            description=f"{len(tasks)} recurring task{'s' if len(tasks) > 1 else ''}",
            slots=0,
            build=Scheduler,
        )
    for settings in options.workers:
        for _ in range(1 if one_each else settings.processes):
            yield Role(
                kind=Worker.kind,
                description=f"queues {', '.join(settings.queues)}; "
                f"{settings.threads} thread{'s' if settings.threads > 1 else ''}",
                slots=worker.slots(settings),
                build=partial(Worker, settings=settings),
            )
