"""The figures of all rounds as one aligned table of plain text."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.drains import DRAINS, Drain

Rounds = Sequence[Mapping[str, float]]

BASE = "steady_queue"
"""The competitor that the ratios refer to."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One row of the table."""

    key: str
    title: str
    digits: int = 0


def _drained(drain: Drain) -> tuple[Measure, ...]:
    return (
        Measure(key=drain.key, title=f"drain, {drain.title}, jobs/s"),
        *(
            [Measure(key=f"{drain.key}_wall", title="  the same with start-up")]
            if drain is DRAINS[0]
            else []
        ),
        Measure(key=f"{drain.key}_cpu_us", title="  CPU of workers, us/job", digits=1),
        Measure(key=f"{drain.key}_server_us", title="  time of the server, us/job", digits=1),
    )


MEASURES = (
    *(measure for drain in DRAINS for measure in _drained(drain)),
    Measure(key="enqueue", title="enqueue one by one, jobs/s"),
    Measure(key="enqueue_cpu_us", title="  CPU of the client, us/job", digits=1),
    Measure(key="enqueue_p50", title="  p50, ms", digits=3),
    Measure(key="enqueue_p95", title="  p95, ms", digits=3),
    Measure(key="enqueue_p99", title="  p99, ms", digits=3),
    Measure(key="bulk", title="enqueue in bulk, jobs/s"),
    Measure(key="bulk_cpu_us", title="  CPU of the client, us/job", digits=1),
    Measure(key="latency_p50", title="commit to start p50, ms", digits=2),
    Measure(key="latency_p95", title="  p95, ms", digits=2),
    Measure(key="latency_p99", title="  p99, ms", digits=2),
    Measure(key="latency_max", title="  max, ms", digits=2),
    Measure(key="statements_enqueue", title="statements per job, enqueue", digits=2),
    Measure(key="statements_run", title="statements per job, workers", digits=3),
    Measure(key="round_trips_enqueue", title="round trips per job, enqueue", digits=2),
    Measure(key="round_trips_run", title="round trips per job, workers", digits=3),
    Measure(key="commits_enqueue", title="commits per job, enqueue", digits=3),
    Measure(key="commits_run", title="commits per job, workers", digits=3),
    Measure(key="idle_cpu", title="idle CPU, % of a core", digits=2),
    Measure(key="idle_queries", title="idle, queries/s at the server", digits=1),
    Measure(key="memory", title="memory of the tree, MiB"),
    Measure(key="processes", title="processes"),
)


def render(figures: Mapping[str, Rounds]) -> str:
    """Return the table: a column for each competitor; median, ratio, and below it the range."""
    names = list(figures)
    rows: list[list[str]] = [["", *names]]
    for measure in MEASURES:
        values = {name: _values(rounds, measure.key) for name, rounds in figures.items()}
        if not any(values.values()):
            continue
        base = statistics.median(values[BASE]) if values.get(BASE) else None
        rows.append([measure.title, *(_cell(values[name], base, measure) for name in names)])
        if any(len(found) > 1 and min(found) != max(found) for found in values.values()):
            rows.append(["", *(_range(values[name], measure) for name in names)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(names) + 1)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * (sum(widths) + 2 * len(names)))
    return "\n".join(lines)


def _values(rounds: Rounds, key: str) -> list[float]:
    return [figures[key] for figures in rounds if key in figures]


def _cell(values: Sequence[float], base: float | None, measure: Measure) -> str:
    if not values:
        return "n/a      "
    median = statistics.median(values)
    ratio = f"{median / base:>6.2f}x" if base else " " * 7
    return f"{median:,.{measure.digits}f} {ratio}"


def _range(values: Sequence[float], measure: Measure) -> str:
    if len(values) < 2:
        return ""
    return f"{min(values):,.{measure.digits}f} - {max(values):,.{measure.digits}f}"
