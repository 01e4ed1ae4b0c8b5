"""Gauges of the queues of a database: what dispatchers measure when metrics are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.db import connections
from django.db.models import Min
from opentelemetry.metrics import CallbackOptions, Observation

from ...configuration import Configuration
from ...dialects import portable
from ...dialects.database import Database
from ...models import Process, ReadyExecution
from ..harmless import harmless
from . import names
from .telemetry import Telemetry

#: Up to how many ready jobs are counted in a queue, and among how many the oldest is looked for.
MOST_COUNTED, MOST_EXAMINED = 10_000, 1_000
#: Most queues that are measured.
MOST_QUEUES = 500


class Gauges:
    """Measures the databases whose dispatchers run in this process."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._databases: dict[str, None] = {}
        self._exist = False

    def begin(self, using: str) -> None:
        """Measure a database from now on."""
        self._databases[using] = None
        if self._exist:
            return
        self._exist = True
        self._create(names.DEPTH, "{job}", "Ready jobs, up to 10,000.", depths)
        self._create(
            names.OLDEST_WAIT, "s", "How long the oldest of the next 1,000 ready jobs has waited.",
            oldest_waits,
        )  # fmt: skip
        self._create(names.PROCESSES, "{process}", "Processes of the queue.", processes)

    def end(self, using: str) -> None:
        """Measure a database no more."""
        self._databases.pop(using, None)

    def _create(
        self, name: str, unit: str, description: str, measure: Callable[[str], list[Observation]]
    ) -> None:
        @harmless
        def measured(using: str) -> list[Observation]:
            try:
                return measure(using)
            finally:
                connections[using].close()  # The reader of metrics has a thread of its own.

        def observe(options: CallbackOptions) -> Iterable[Observation]:
            return [each for using in list(self._databases) for each in measured(using) or []]

        self._telemetry.meter.create_observable_gauge(name, [observe], unit, description)


def depths(using: str) -> list[Observation]:
    """Count the ready jobs of each queue."""
    database = Database.of(using)
    return [
        Observation(
            database.dialect.count_ready(database.connection, queue, MOST_COUNTED),
            {names.DESTINATION: queue, names.NAMESPACE: using},
        )
        for queue in database.list_queues()[:MOST_QUEUES]
    ]


def oldest_waits(using: str) -> list[Observation]:
    """Look for the oldest of the jobs that come next in each queue."""
    database = Database.of(using)
    present = database.current_time()
    found = []
    for queue in database.list_queues()[:MOST_QUEUES]:
        rows = ReadyExecution.objects.using(using).filter(queue_name=queue)
        some = rows.order_by("rank", "turn")[:MOST_EXAMINED]
        oldest = some.aggregate(oldest=Min("created_at"))["oldest"]
        if oldest is not None:
            waited = max(0.0, (present - portable.aware(oldest)).total_seconds())
            found.append(Observation(waited, {names.DESTINATION: queue, names.NAMESPACE: using}))
    return found


def processes(using: str) -> list[Observation]:
    """Count the processes by kind, and whether their heartbeat has expired."""
    limit = Database.of(using).current_time() - Configuration.load().process_alive_threshold
    counted: dict[tuple[str, str], int] = {}
    rows: Any = Process.objects.using(using).values_list("kind", "last_heartbeat_at")
    for kind, beat in rows:
        state = "live" if portable.aware(beat) >= limit else "stale"
        counted[kind, state] = counted.get((kind, state), 0) + 1
    return [
        Observation(count, {names.KIND: kind, names.STATE: state, names.NAMESPACE: using})
        for (kind, state), count in counted.items()
    ]
