"""Fixtures for tests that enqueue tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.dispatch import Signal

from steady_queue_core.compat import task_enqueued, task_finished, task_started
from steady_queue_core.tasks import registry

from .samples import (
    FRAMEWORK,
    OURS,
    Recorder,
)


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the tasks that a test makes."""
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))


@pytest.fixture
def recorders() -> Iterator[dict[str, Recorder]]:
    signals = {"enqueued": task_enqueued, "started": task_started, "finished": task_finished}
    recorders = {name: Recorder(signal) for name, signal in signals.items()}
    for recorder in recorders.values():
        recorder.signal.connect(recorder)
    yield recorders
    for recorder in recorders.values():
        recorder.signal.disconnect(recorder)


@pytest.fixture
def connect() -> Iterator[Callable[[Signal, Callable[..., None]], None]]:
    """Connects receivers for the time of the test."""
    connected: list[tuple[Signal, Callable[..., None]]] = []

    def connect(signal: Signal, receiver: Callable[..., None]) -> None:
        signal.connect(receiver)
        connected.append((signal, receiver))

    yield connect
    for signal, receiver in connected:
        signal.disconnect(receiver)


@pytest.fixture
def several_backends(settings: Any) -> None:
    settings.TASKS = {
        "default": OURS,
        "second": {**OURS, "OPTIONS": {"max_attempts": 2, "backoff": 0}},
        "immediate": {"BACKEND": f"{FRAMEWORK}.backends.immediate.ImmediateBackend"},
        "dummy": {"BACKEND": f"{FRAMEWORK}.backends.dummy.DummyBackend"},
    }
