"""One file for each competitor."""

from __future__ import annotations

from benchmarks.adapters.base import Adapter, Capabilities

__all__ = ["Adapter", "Capabilities", "competitors"]


def competitors() -> dict[str, Adapter]:
    """Return every competitor by its name, in the order of the table's columns."""
    from benchmarks.adapters import (
        dj_queue,
        django_ox,
        django_tasks_db,
        floor,
        huey,
        oban,
        pgqueuer,
        procrastinate,
        steady_queue,
        steady_queue_030,
    )

    adapters: tuple[Adapter, ...] = (
        *(steady_queue.SteadyQueue(variant) for variant in steady_queue.VARIANTS),
        floor.Floor(),
        steady_queue_030.SteadyQueue030(),
        django_tasks_db.DjangoTasksDb(),
        dj_queue.DjQueue(),
        django_ox.DjangoOx(),
        procrastinate.Procrastinate(),
        pgqueuer.Pgqueuer(),
        oban.Oban(),
        huey.Huey(results=True),
        huey.Huey(results=False),
    )
    return {adapter.name: adapter for adapter in adapters}
