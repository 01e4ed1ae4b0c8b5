from __future__ import annotations

from typing import Any

from django.apps import AppConfig


class BadAppConfig(AppConfig):
    name = "tests.badapp"
    label = "badapp"

    def ready(self) -> None:
        from steady_queue_core.compat import task_finished, task_started

        task_started.connect(_on_start)
        task_finished.connect(_on_finish)


def _on_start(task_result: Any, **kwargs: Any) -> None:
    if "receivers_raise" in task_result.task.name:
        raise ValueError("a receiver of task_started")


def _on_finish(task_result: Any, **kwargs: Any) -> None:
    if "receivers_raise" in task_result.task.name:
        raise SystemExit("a receiver of task_finished")
