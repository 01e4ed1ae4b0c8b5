from __future__ import annotations

from typing import Any

from django.apps import AppConfig


class FaultyAppConfig(AppConfig):
    name = "tests.faults.app"
    label = "faults"

    def ready(self) -> None:
        from steady_queue_core import signals
        from steady_queue_core.compat import task_finished, task_started

        from .switch import trip

        def raise_for_faulty(place: str) -> Any:
            def receiver(task_result: Any, **kwargs: Any) -> None:
                if task_result.task.queue_name == "faulty":
                    trip(place)

            return receiver

        def raise_at(place: str) -> Any:
            return lambda **kwargs: trip(place)

        for name, signal in (
            ("task_started", task_started), ("task_finished", task_finished),
            ("task_retried", signals.task_retried),
        ):  # fmt: skip
            signal.connect(raise_for_faulty(f"receiver of {name}"), weak=False)
        for name in ("jobs_claimed", "jobs_settled", "process_polled", "process_beat"):
            getattr(signals, name).connect(raise_at(f"receiver of {name}"), weak=False)
