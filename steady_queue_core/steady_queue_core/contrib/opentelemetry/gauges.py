"""Gauges of the queues of a database: what dispatchers measure when metrics are read."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable

from django.db import connections
from opentelemetry.metrics import CallbackOptions, Observation

from ...listings.processes import ListedProcess, listed_processes
from ...listings.queues import ListedQueue, listed_queues
from ..harmless import harmless
from . import names
from .telemetry import Telemetry

#: Seconds for which a look at a database serves several gauges.
LASTING = 1.0


class Look:
    """One look at a database, for all gauges."""

    def __init__(self, using: str) -> None:
        self.using, self._at = using, time.monotonic()
        self.processes: list[ListedProcess] = listed_processes(using)
        self.queues: list[ListedQueue] = listed_queues(using, self.processes, states=())

    @property
    def is_recent(self) -> bool:
        return time.monotonic() - self._at < LASTING

    def depths(self) -> list[Observation]:
        """Return how many jobs are ready in each queue."""
        return [Observation(each.ready.number, self._of_queue(each)) for each in self.queues]

    def oldest_waits(self) -> list[Observation]:
        """Return how long the oldest ready job of each queue has waited."""
        return [
            Observation(each.oldest_wait.total_seconds(), self._of_queue(each))
            for each in self.queues
            if each.oldest_wait is not None
        ]

    def counts_of_processes(self) -> list[Observation]:
        """Return how many processes there are, by kind, and whether their heartbeat has expired."""
        counted = Counter(
            (str(each.row.kind), "live" if each.is_live else "stale") for each in self.processes
        )
        return [
            Observation(count, {names.KIND: kind, names.STATE: state, names.NAMESPACE: self.using})
            for (kind, state), count in counted.items()
        ]

    def _of_queue(self, queue: ListedQueue) -> dict[str, str]:
        return {names.DESTINATION: queue.name, names.NAMESPACE: self.using}


class Gauges:
    """Measures the databases whose dispatchers run in this process."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._databases: dict[str, None] = {}
        self._looks: dict[str, Look] = {}
        self._exist = False

    def begin(self, using: str) -> None:
        """Measure a database from now on."""
        self._databases[using] = None
        if self._exist:
            return
        self._exist = True
        self._create(names.DEPTH, "{job}", "Ready jobs, up to 10,000.", Look.depths)
        self._create(
            names.OLDEST_WAIT,
            "s",
            "How long the oldest of the next 10,000 ready jobs has waited.",
            Look.oldest_waits,
        )
        self._create(
            names.PROCESSES, "{process}", "Processes of the queue.", Look.counts_of_processes
        )

    def end(self, using: str) -> None:
        """Measure a database no more."""
        self._databases.pop(using, None)
        self._looks.pop(using, None)

    def _create(
        self, name: str, unit: str, description: str, measure: Callable[[Look], list[Observation]]
    ) -> None:
        @harmless
        def measured(using: str) -> list[Observation]:
            return measure(self._look_at(using))

        def observe(options: CallbackOptions) -> Iterable[Observation]:
            return [each for using in list(self._databases) for each in measured(using) or []]

        self._telemetry.meter.create_observable_gauge(name, [observe], unit, description)

    def _look_at(self, using: str) -> Look:
        look = self._looks.get(using)
        if look is None or not look.is_recent:
            try:
                look = self._looks[using] = Look(using)
            finally:
                connections[using].close()  # The reader of metrics has a thread of its own.
        return look
