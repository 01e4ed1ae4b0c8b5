"""A database's clock that a test sets forward and back, and the monotonic clock beside it."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DateTimeField, Expression, Value

from steady_queue_core.dialects import portable
from steady_queue_core.dialects.dialect import Dialect
from steady_queue_core.processes.base import steady_clock

real_now = Dialect.now


class SteppedClock:
    """The clocks, and what they show beyond the time that has really passed."""

    def __init__(self) -> None:
        self.stepped = self.passed = timedelta(0)

    def step(self, by: timedelta) -> None:
        """Set the database's clock."""
        self.stepped += by

    def wait(self, by: timedelta) -> None:
        """Let time pass, on both clocks."""
        self.passed += by

    def current_time(self, dialect: Dialect, connection: BaseDatabaseWrapper) -> datetime:
        real = portable.current_time(connection, real_now(dialect, connection))
        return real + self.stepped + self.passed

    def now(self, dialect: Dialect, connection: BaseDatabaseWrapper) -> Expression:
        present = portable.storable(self.current_time(dialect, connection))
        return Value(present, output_field=DateTimeField())

    def monotonic(self) -> float:
        return time.monotonic() + self.passed.total_seconds()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SteppedClock:
    """The clocks by which heartbeats are sent and judged."""
    clock = SteppedClock()
    monkeypatch.setattr(Dialect, "current_time", lambda *given: clock.current_time(*given))
    monkeypatch.setattr(Dialect, "now", lambda *given: clock.now(*given))
    monkeypatch.setattr(steady_clock, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock
