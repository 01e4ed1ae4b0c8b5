"""Reads the rows of statistics and samples that a page needs, by one statement."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.db.models import (
    BigIntegerField,
    Case,
    Exists,
    F,
    Max,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce

from ..listings.damage import suppress_damage
from ..listings.statement import rows_of
from ..models import Sample, Statistic
from ..statistics.tally import HISTOGRAMS, HOUR, MINUTE, QUARTER, QUARTER_SUM, RECENT_HOUR
from .scope import DAY, LATELY, RECENT, Scope
from .total import COUNTED, OUTCOMES

#: Most rows of statistics of minutes, and of hours, that are read: the latest ones.
MOST = 50_000
#: What a row counts at most where the database adds: more would not fit.
MOST_COUNTED = 10**12
#: What rows are, where that is not their span: samples; the outcomes of hours, whatever the scope,
#: and of those in the scope that have become hours, or are beside their minutes; and the last hours
#: in which tasks have failed.
SAMPLE, BEFORE, COUNTED_HOUR, COUNTED_RECENT_HOUR, LAST_FAILED = range(10, 15)
NAMES = ("minute", "queue_name", "task_path")
#: After what a row is.
COLUMNS = (*NAMES, *COUNTED)
SAMPLED = ("minute", "queue_name", "ready", "oldest_wait_ms")

Part = tuple[str, QuerySet[Any, Any]]


def history_rows(scope: Scope, minute: int) -> list[tuple[Any, ...]]:
    """Return rows up to a minute, each after what it is: a span, or one of the above. There may be
    both kinds of an hour of which the minutes are going."""
    known = Statistic.objects.using(scope.using).filter(minute__lte=minute)
    window, hour = scope.window, minute - minute % HOUR
    recent, first = minute - RECENT, window.steps(minute)[0]
    minutes = known.filter(span=MINUTE)
    hours = known.filter(span=RECENT_HOUR)
    parts = [
        _each(MINUTE, minutes.filter(minute__gte=recent)),
        _together(BEFORE, hours.filter(minute__gte=hour - DAY.length)),
        *_samples(scope, minute),
    ]
    if window.step == HOUR:
        # The last hour may not have been summed up yet.
        unsummed = minutes.filter(minute__gte=hour - HOUR, minute__lt=recent)
        unsummed = unsummed.exclude(Exists(hours.filter(minute=hour - HOUR)))
        parts.append(_each(MINUTE, unsummed))
    if window.timed_step == HOUR:
        parts.append(_each(RECENT_HOUR, hours.filter(minute__gte=first)))
    elif window.timed_step == QUARTER:
        parts += _week(scope, known.filter(minute__gte=first), first)
    with suppress_damage():
        return rows_of(scope.using, [(text, rows[:MOST]) for text, rows in parts])
    return []


def is_cut(rows: list[tuple[Any, ...]]) -> bool:
    """Whether there were more rows of a kind than are read."""
    return MOST in Counter(row[0] for row in rows).values()


def _week(scope: Scope, known: QuerySet[Statistic], first: int) -> list[Part]:
    quarters = known.filter(span=QUARTER_SUM)
    parts = [_each(QUARTER_SUM, quarters)]
    last = quarters.order_by("-minute").values("minute")[:1]
    # They are summed up in their order.
    unsummed = Q(minute__gte=Coalesce(Subquery(last) + QUARTER, Value(first)))
    names = {"queue_name": scope.queue, "task_path": scope.task}
    within = {name: each for name, each in names.items() if each}
    for span, counted in ((RECENT_HOUR, COUNTED_RECENT_HOUR), (HOUR, COUNTED_HOUR)):
        hours = known.filter(span=span)
        parts.append(_each(span, hours.filter(unsummed)))
        parts.append(_together(counted, hours.filter(**within)))
        parts.append(_last_failed(hours.filter(**within)))
    return parts


def _last_failed(hours: QuerySet[Any, Any]) -> Part:
    filling = ", ".join("''" if each in HISTOGRAMS else "0" for each in COUNTED)
    text = f"SELECT {LAST_FAILED}, last_minute, '', task_path, {filling} FROM {{rows}}"
    failed = hours.filter(failed__gt=0).order_by().values("task_path")
    return text, failed.annotate(last_minute=Max("minute"))


def _samples(scope: Scope, minute: int) -> list[Part]:
    samples = Sample.objects.using(scope.using).order_by().values(*SAMPLED)
    filling = ", ".join(["''", "ready", "oldest_wait_ms", *"0" * (len(COUNTED) - 4), "''", "''"])
    text = f"SELECT {SAMPLE}, minute, queue_name, {filling} FROM {{rows}}"
    shown = list(scope.window.samples(minute))
    return [
        (text, samples.filter(queue_name="", minute__in=shown)),
        (text, samples.filter(minute__in=[minute - LATELY + each for each in (-1, 0, 1)])),
    ]


def _each(what: int, rows: QuerySet[Any, Any]) -> Part:
    """Return what selects rows."""
    text = f"SELECT {what}, {', '.join(COLUMNS)} FROM {{rows}}"
    return text, rows.order_by("-minute").values(*COLUMNS)


def _together(what: int, rows: QuerySet[Any, Any]) -> Part:
    """Return what selects the outcomes of each hour, of all these rows together."""
    sums = {
        f"sum_of_{name}": Cast(Sum(Case(_sound(name), default=Value(0))), BigIntegerField())
        for name in OUTCOMES
    }
    counted = [f"sum_of_{each}" if each in OUTCOMES else "''" if each in HISTOGRAMS else "0"
               for each in COUNTED]  # fmt: skip
    text = f"SELECT {what}, minute, '', '', {', '.join(counted)} FROM {{rows}}"
    return text, rows.order_by().values("minute").annotate(**sums)


def _sound(name: str) -> When:
    """Return a column where it has a number that is not too large, nor a text on SQLite."""
    return When(**{f"{name}__gte": 0, f"{name}__lte": MOST_COUNTED}, then=F(name))
