"""The charts of the overview."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.utils import timezone

from ..overview import Overview
from ..overview.total import Total
from .chart_scales import Scale
from .charts_svg import Chart, Series
from .texts import duration


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


def _steps(overview: Overview) -> list[str]:
    length = overview.scope.window.length
    return [clock_of(minute, length) for minute in overview.history.steps]


def _ended(overview: Overview) -> Chart:
    totals = list(overview.history.steps.values())
    total = overview.history.total
    per = "minute" if overview.scope.window.step == 1 else "hour"
    summed = [each.finished + each.failed + each.retried for each in totals]
    return Chart(
        "ended",
        f"Ended in each {per}",
        _steps(overview),
        [
            Series("finished", "finished", [each.finished for each in totals]),
            Series("retried", "retried", [each.retried for each in totals]),
            Series("failed", "failed", [each.failed for each in totals]),
        ],
        [number] * 3,
        [Scale.of_numbers(summed)],
        f"Attempts that ended in each {per}, for {overview.scope.window.label}: "
        f"{total.finished:,} finished, {total.retried:,} retried, {total.failed:,} failed",
        stacked=True,
    )


def _times(overview: Overview) -> Chart:
    totals = list(overview.history.steps.values())

    def values(of: Callable[[Total], float | None]) -> list[float | None]:
        return [of(each) for each in totals]

    series = [
        Series("wait 50 %", "median", values(lambda each: each.wait(0.5))),
        Series("wait 95 %", "wait", values(lambda each: each.wait(0.95))),
        Series("run 95 %", "run", values(lambda each: each.run(0.95))),
    ]
    every = [value for each in series for value in each.values]
    total = overview.history.total
    return Chart(
        "times",
        "Waiting and running times",
        _steps(overview),
        series,
        [milliseconds] * 3,
        [Scale.of_durations(every)],
        f"For {overview.scope.window.label}: half of the jobs waited up to "
        f"{milliseconds(total.wait(0.5))}, 95 % up to {milliseconds(total.wait(0.95))}; 95 % of "
        f"the attempts took up to {milliseconds(total.run(0.95))}",
    )


def _lengths(overview: Overview) -> Chart:
    window, known = overview.scope.window, overview.history.samples
    minutes = window.samples(overview.moment.minute)
    samples = [known.get(minute) for minute in minutes]
    ready = [None if each is None else each.ready for each in samples]
    waits = [None if each is None else each.oldest_wait_ms for each in samples]
    return Chart(
        "lengths",
        "Ready jobs and oldest wait",
        [clock_of(minute, window.length) for minute in minutes],
        [Series("ready jobs", "ready", ready), Series("oldest wait", "wait", waits)],
        [number, milliseconds],
        [Scale.of_numbers(ready), Scale.of_durations(waits)],
        f"For {window.label}: up to {max((e for e in ready if e is not None), default=0):,} ready "
        f"jobs, the oldest for up to "
        f"{milliseconds(max((e for e in waits if e is not None), default=None))}",
    )
