from __future__ import annotations

from functools import partial, wraps
from typing import Any

from django.apps import AppConfig

from ..places import HOOKS
from .switch import trip


class FaultyAppConfig(AppConfig):
    name = "tests.faults.app"
    label = "faults"

    def ready(self) -> None:
        _connect_receivers()
        _register_hooks()
        _surround_payloads()


def _connect_receivers() -> None:
    from steady_queue_core import signals
    from steady_queue_core.compat import task_enqueued, task_finished, task_started

    for name, signal in (
        ("task_started", task_started), ("task_finished", task_finished),
        ("task_retried", signals.task_retried), ("task_enqueued", task_enqueued),
    ):  # fmt: skip
        signal.connect(partial(_receive, f"receiver of {name}"), weak=False)
    for name in (
        "jobs_claimed", "jobs_settled", "process_polled", "process_beat", "jobs_dispatched",
    ):  # fmt: skip
        getattr(signals, name).connect(_tripping(f"receiver of {name}"), weak=False)
    of_schedules = _tripping("schedule: receiver of recurring_enqueued")
    signals.recurring_enqueued.connect(of_schedules, weak=False)


def _receive(place: str, task_result: Any, **kwargs: Any) -> None:
    queue = task_result.task.queue_name
    if queue == "faulty":
        trip(place)
    elif queue == "scheduled":
        trip(f"schedule: {place}")


def _register_hooks() -> None:
    from steady_queue_core import hooks

    for name in HOOKS:
        getattr(hooks, name)(_tripping(f"hook: {name}"))
    hooks.on_internal_error(_tripping("hook of internal errors"))
    hooks.on_internal_error(_tripping("schedule: hook of internal errors"))


def _tripping(place: str) -> Any:
    return lambda *args, **kwargs: trip(place)


def _surround_payloads() -> None:
    """Have what seals and opens payloads fail as libraries do that it uses."""
    from steady_queue_core.payloads.codec import PayloadCodec

    for name, act in (("seal", "sealing"), ("open", "opening")):
        setattr(PayloadCodec, name, _failing(getattr(PayloadCodec, name), act))


def _failing(method: Any, act: str) -> Any:
    @wraps(method)
    def failing(self: Any, text: str, scope: Any) -> str:
        if "faulty" in scope:
            trip(f"{act} of a {scope[0]}")
        return str(method(self, text, scope))

    return failing
