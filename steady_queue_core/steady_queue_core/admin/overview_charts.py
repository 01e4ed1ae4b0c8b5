"""The charts of the overview."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TypeVar

from django.utils import timezone

from ..overview import Overview
from ..overview.history import Length
from ..overview.total import Total
from .charts_svg import Chart, Scale, Series
from .texts import duration

Item = TypeVar("Item")


def charts(overview: Overview) -> list[Chart]:
    """Return what has ended, how long that took, and how many jobs waited."""
    return [_ended(overview), _times(overview), _lengths(overview)]


def milliseconds(value: float | None) -> str:
    """Return a duration in words; a dash for none."""
    if value is None:
        return "-"
    return duration(timedelta(milliseconds=min(value, 10**14)))


def number(value: float) -> str:
    """Return a number with few digits."""
    if value >= 1_000_000:
        return f"{_brief(value / 1_000_000)} M"
    return f"{_brief(value / 1_000)} k" if value >= 10_000 else _brief(value)


def _brief(value: float) -> str:
    return f"{value:,.3g}" if value < 999.5 else f"{value:,.0f}"


def clock_of(minute: int, length: int) -> str:
    """Return when a minute was, in the current time zone: with the day in a window of days."""
    at = datetime.fromtimestamp(minute * 60, UTC).astimezone(timezone.get_current_timezone())
    return f"{at:%a %H:%M}" if length > 24 * 60 else f"{at:%H:%M}"


def _clock(overview: Overview) -> Callable[[int], str]:
    length = overview.scope.window.length
    return lambda minute: clock_of(minute, length)


def _by_row(overview: Overview, found: Mapping[int, Item | None]) -> list[tuple[str, list[Item]]]:
    """Return what there is in each row of a table, and what the row is called."""
    rows: dict[int, list[Item]] = {}
    for minute, each in found.items():
        if each is not None:
            rows.setdefault(minute - minute % overview.scope.window.row, []).append(each)
    return [*zip(map(_clock(overview), rows), rows.values(), strict=True)]


def _ended(overview: Overview) -> Chart:
    steps, total = overview.history.steps, overview.history.total
    per = "minute" if overview.scope.window.step == 1 else "hour"

    def outcomes(each: Total) -> tuple[int, int, int]:
        return each.finished, each.retried, each.failed

    counts = [outcomes(each) for each in steps.values()]
    finished, retried, failed = zip(*counts, strict=True)
    return Chart(
        "ended",
        f"Ended in each {per}",
        [*steps],
        _clock(overview),
        [
            Series("finished", "finished", finished),
            Series("retried", "retried", retried),
            Series("failed", "failed", failed),
        ],
        [number] * 3,
        [Scale.of_numbers(map(sum, counts))],
        [(row, outcomes(Total.counts_of(each))) for row, each in _by_row(overview, steps)],
        f"Attempts that ended in each {per}, for {overview.scope.window.label}: "
        f"{total.finished:,} finished, {total.retried:,} retried, {total.failed:,} failed",
        stacked=True,
    )


def _times(overview: Overview) -> Chart:
    steps, total = overview.history.timed_steps, overview.history.total

    def times(each: Total) -> tuple[float | None, ...]:
        return each.wait(0.5), each.wait(0.95), each.run(0.95)

    by_step = [times(each) for each in steps.values()]
    median, wait, run = zip(*by_step, strict=True)
    return Chart(
        "times",
        "Waiting and running times",
        [*steps],
        _clock(overview),
        [
            Series("wait 50 %", "median", median),
            Series("wait 95 %", "wait", wait),
            Series("run 95 %", "run", run),
        ],
        [milliseconds] * 3,
        [Scale.of_durations(chain(*by_step))],
        [(row, times(Total.sum_of(each))) for row, each in _by_row(overview, steps)],
        f"For {overview.scope.window.label}: half of the jobs waited up to "
        f"{milliseconds(total.wait(0.5))}, 95 % up to {milliseconds(total.wait(0.95))}; 95 % of "
        f"the attempts took up to {milliseconds(total.run(0.95))}",
    )


def _lengths(overview: Overview) -> Chart:
    window, known = overview.scope.window, overview.history.samples
    samples = {minute: known.get(minute) for minute in window.samples(overview.moment.minute)}
    ready = [None if each is None else each.ready for each in samples.values()]
    waits = [None if each is None else each.oldest_wait_ms for each in samples.values()]

    def longest(lengths: Iterable[Length]) -> tuple[int, int]:
        numbers, times = zip(*lengths, strict=True)
        return max(numbers), max(times)

    return Chart(
        "lengths",
        "Ready jobs and oldest wait",
        [*samples],
        _clock(overview),
        [Series("ready jobs", "ready", ready), Series("oldest wait", "wait", waits)],
        [number, milliseconds],
        [Scale.of_numbers(ready), Scale.of_durations(waits)],
        [(row, longest(each)) for row, each in _by_row(overview, samples)],
        f"For {window.label}: up to {max((e for e in ready if e is not None), default=0):,} ready "
        f"jobs, the oldest for up to "
        f"{milliseconds(max((e for e in waits if e is not None), default=None))}",
    )
