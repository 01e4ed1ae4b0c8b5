"""Recurring tasks, in code and stored ones, whose runs go wrong before they are stored."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

from steady_queue_core import (
    Unique,
    limits_concurrency,
    limits_rate,
    recurring,
    schedule_recurring_task,
    task,
)  # fmt: skip

from .switch import trip

IN_CODE, STORED = "in code", "stored"
SECOND = timedelta(seconds=1)


def _key_at(place: str) -> Any:
    def key(where: str) -> str:
        trip(f"schedule: {place}, {where}")
        return str(uuid4())

    return key


@limits_concurrency(key=_key_at("concurrency key"))
@task(queue_name="scheduled")
def limited(where: str) -> None:
    pass


@task(queue_name="scheduled", unique=Unique(key=_key_at("unique key")))
def unique(where: str) -> None:
    pass


@limits_rate(key=_key_at("rate key"), to=1000, per=SECOND)
@task(queue_name="scheduled")
def rated(where: str) -> None:
    pass


@task(queue_name="scheduled")
def plain(where: str) -> None:
    pass


@task
def fetching(instance: Any) -> None:
    pass


@task(queue_name="scheduled")
def healthy() -> None:
    pass


TASKS = {"concurrency key": limited, "unique key": unique, "rate key": rated, "middleware": plain}
for _place, _task in TASKS.items():
    recurring(schedule=SECOND, key=f"{_place}, {IN_CODE}", args=[IN_CODE])(_task)
recurring(schedule=SECOND, key="healthy")(healthy)


def store() -> list[str]:
    """Add those that are no code; return the keys of all."""
    from .models import Instance

    for place, each in TASKS.items():
        schedule_recurring_task(f"{place}, {STORED}", each, schedule=SECOND, args=[STORED])
    instance = Instance.objects.create()
    schedule_recurring_task("instance", fetching, schedule=SECOND, args=[instance])
    places = [f"{place}, {where}" for place in TASKS for where in (IN_CODE, STORED)]
    return [*places, "healthy", "instance"]
