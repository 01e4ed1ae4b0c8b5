"""A dispatcher wakes the workers when it has made jobs ready."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.db import connections

from steady_queue_core.configuration import Configuration
from steady_queue_core.dialects import Dialect, dialect_for, portable
from steady_queue_core.dialects.conformance.base import new_job
from steady_queue_core.models import ScheduledExecution
from steady_queue_core.processes.database import QueueDatabase
from steady_queue_core.processes.dispatcher import Dispatcher
from steady_queue_core.processes.runtime import Runtime


@pytest.mark.django_db(transaction=True)
def test_the_bell_rings_when_jobs_were_moved_and_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[list[str]] = []

    def ring(self: Dialect, connection: Any, queue_names: Sequence[str]) -> None:
        rung.append(list(queue_names))

    monkeypatch.setattr(Dialect, "ring", ring)
    runtime = SimpleNamespace(using="default", database=QueueDatabase("default"))
    dispatcher = Dispatcher(cast(Runtime, runtime), Configuration.Dispatcher())
    connection, dialect = connections["default"], dialect_for("default")
    dialect.enqueue(connection, [new_job(delay=timedelta(hours=1))])
    assert dispatcher._dispatch() > 0.5
    assert rung == []
    past = dialect.current_time(connection) - timedelta(seconds=1)
    ScheduledExecution.objects.update(due_at=portable.storable(past))
    dispatcher._dispatch()
    assert rung == [[]]
    dispatcher._dispatch()
    assert rung == [[]]
