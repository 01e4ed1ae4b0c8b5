"""The families of metrics, each with its samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)

from ..printable import printable_lines
from ..statistics.histogram import BOUNDS
from ..statistics.tally import Tally
from .scrape import Scrape, scrapes

COUNTERS = {
    "enqueued": "Jobs whose first attempt has ended",
    "finished": "Jobs that have finished",
    "failed": "Jobs that have failed",
    "retried": "Attempts that have failed, after which the job runs again",
    "released": "Claims that were given back without an attempt",
    "lost": "Attempts that were lost with their process",
}
HISTOGRAMS = {
    "task_duration_seconds": ("run", "Durations of attempts"),
    "task_wait_seconds": ("wait", "Times from the enqueue to the first attempt"),
}
CAPPED = "exact up to 10,000"


class Families:
    """What an encoder of the client library takes for a registry: reads all at each ``collect``."""

    def __init__(self, names: Collection[str] = ()) -> None:
        """``names``: of the families that are wanted; none: all of them."""
        self._names = names

    def collect(self) -> Iterator[Metric]:
        """Yield the families with the samples of all databases."""
        for family in _of(list(scrapes())):
            if not self._names or family.name in self._names:
                yield make_printable(family)


Answered = Iterable[tuple[str, Scrape]]


def family_names() -> frozenset[str]:
    """Return the names of all families."""
    return frozenset(family.name for family in _of([]))


def _of(found: Sequence[tuple[str, Scrape | None]]) -> Iterator[Metric]:
    up = GaugeMetricFamily("steady_queue_up", "Whether the database answers", labels=["backend"])
    for backend, scrape in found:
        up.add_metric([backend], 0.0 if scrape is None else 1.0)
    yield up
    answered = [(backend, scrape) for backend, scrape in found if scrape is not None]
    yield _info(answered)
    yield from _of_queues(answered)
    yield from _of_processes(answered)
    yield from _of_schedules(answered)
    yield from _counters(answered)
    yield from _histograms(answered)


def _info(answered: Answered) -> Metric:
    family = InfoMetricFamily("steady_queue", "Versions", labels=["backend"])
    for backend, scrape in answered:
        family.add_metric([backend], scrape.versions)
    return family


def _of_queues(answered: Answered) -> Iterator[Metric]:
    labels = ["backend", "queue"]
    tasks = GaugeMetricFamily(
        "steady_queue_tasks", f"Jobs that have not finished, {CAPPED}", labels=[*labels, "state"]
    )
    oldest = GaugeMetricFamily(
        "steady_queue_oldest_wait_seconds", "Age of the oldest ready job", labels=labels
    )
    paused = GaugeMetricFamily(
        "steady_queue_queue_paused", "Whether the queue is paused", labels=labels
    )
    workers = GaugeMetricFamily(
        "steady_queue_queue_workers", "Live workers that serve the queue", labels=labels
    )
    for backend, scrape in answered:
        for queue in scrape.queues:
            named = [backend, queue.name]
            for state, count in {"ready": queue.ready, **queue.counts}.items():
                tasks.add_metric([*named, state], count.number)
            wait = queue.oldest_wait
            oldest.add_metric(named, 0.0 if wait is None else wait.total_seconds())
            paused.add_metric(named, float(queue.is_paused))
            workers.add_metric(named, queue.workers)
    yield from (tasks, oldest, paused, workers)


def _of_processes(answered: Answered) -> Iterator[Metric]:
    processes = GaugeMetricFamily(
        "steady_queue_processes", "Registered processes", labels=["backend", "kind", "state"]
    )
    threads = GaugeMetricFamily(
        "steady_queue_worker_threads",
        "Threads of live workers, and how many of these, or coroutines, run jobs",
        labels=["backend", "state"],
    )
    dispatch = GaugeMetricFamily(
        "steady_queue_dispatch_lag_seconds",
        "By how much the scheduled job that is most overdue is late",
        labels=["backend"],
    )
    for backend, scrape in answered:
        for (kind, state), number in scrape.processes.items():
            processes.add_metric([backend, kind, state], number)
        threads.add_metric([backend, "total"], scrape.threads)
        threads.add_metric([backend, "busy"], scrape.running)
        dispatch.add_metric([backend], scrape.dispatch_lag)
    yield from (processes, threads, dispatch)


def _of_schedules(answered: Answered) -> Iterator[Metric]:
    labels = ["backend", "key"]
    last = GaugeMetricFamily(
        "steady_queue_recurring_last_run_timestamp_seconds", "Slot of the last run", labels=labels
    )
    coming = GaugeMetricFamily(
        "steady_queue_recurring_next_run_timestamp_seconds", "Slot of the next run", labels=labels
    )
    lag = GaugeMetricFamily(
        "steady_queue_scheduler_lag_seconds",
        "By how much the run of a schedule that is most overdue is late",
        labels=["backend"],
    )
    for backend, scrape in answered:
        for schedule in scrape.schedules:
            if schedule.last_run is not None:
                last.add_metric([backend, schedule.key], schedule.last_run)
            if schedule.next_run is not None:
                coming.add_metric([backend, schedule.key], schedule.next_run)
        lag.add_metric([backend], scrape.scheduler_lag)
    yield from (last, coming, lag)


def _counters(answered: Answered) -> Iterator[Metric]:
    for name, text in COUNTERS.items():
        family = CounterMetricFamily(
            f"steady_queue_tasks_{name}", text, labels=["backend", "queue", "task"]
        )
        for backend, scrape in answered:
            for (queue, task), tally in scrape.totals.items():
                family.add_metric([backend, queue, task], getattr(tally, name))
        yield family


def _histograms(answered: Answered) -> Iterator[Metric]:
    for name, (kind, text) in HISTOGRAMS.items():
        family = HistogramMetricFamily(f"steady_queue_{name}", text, labels=["backend", "queue"])
        for backend, scrape in answered:
            for queue, tally in scrape.totals_by_queue.items():
                seconds = getattr(tally, f"{kind}_ms") / 1000
                family.add_metric([backend, queue], _buckets(tally, kind), seconds)
        yield family


def _buckets(tally: Tally, kind: str) -> list[tuple[str, float]]:
    counters = getattr(tally, f"{kind}_histogram")
    bounds = [*(str(bound / 1000) for bound in BOUNDS), "+Inf"]
    total, buckets = 0, []
    for bound, counter in zip(bounds, counters, strict=True):
        total += counter
        buckets.append((bound, float(total)))
    return buckets


def make_printable(family: Metric) -> Metric:
    """Replace what is unsafe to print in the labels of a family by escapes. The format itself has
    one for the end of a line.

    Names that are the same then become one series, with the sum: Prometheus refuses all of an
    answer that has a series twice.
    """
    found: dict[tuple[str, ...], Any] = {}
    for sample in family.samples:
        labels = {name: printable_lines(text) for name, text in sample.labels.items()}
        key = sample.name, *labels.values()
        value = sample.value + (found[key].value if key in found else 0)
        found[key] = sample._replace(labels=labels, value=value)
    family.samples = list(found.values())
    return family
