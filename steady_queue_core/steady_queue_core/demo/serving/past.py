"""Makes up a past: statistics of a week in which the demo did not run."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator

from ...models import Sample, Statistic
from ...statistics.tally import HISTOGRAMS, HOUR, KEPT, MINUTE, RECENT_HOUR, SUMS, Tally
from .traffic import ENQUEUED, OTHERS, Traffic, busyness

DAY, WEEK = 24 * 60, 7 * 24 * 60
#: Minutes that have rows of their own. Before them there are hours.
MINUTES = 90
#: No other process has these numbers.
WRITER, NOBODY = 1, 0
#: So many durations stand for those of a row.
EXAMPLES = 50
#: Minutes ago in which the payments were in trouble, today and yesterday.
TROUBLE = (range(22, 27), range(DAY - 200, DAY - 80))
ALL = ""


def invent() -> None:
    """Store the rows."""
    present = int(time.time() // 60)
    first = present - MINUTES
    first -= first % HOUR
    Statistic.objects.bulk_create(
        [*_minutes(first, present), *_hours(present, first)], batch_size=500
    )
    Sample.objects.bulk_create(_samples(present), batch_size=500)


def _minutes(first: int, present: int) -> Iterator[Statistic]:
    part = time.time() % 60 / 60
    for minute in range(first, present + 1):
        length = busyness(minute) * (part if minute == present else 1)
        yield from _rows(MINUTE, minute, WRITER, present - minute, length)


def _hours(present: int, end: int) -> Iterator[Statistic]:
    for hour in range(end - WEEK, end, HOUR):
        age = present - hour
        span = RECENT_HOUR if age < KEPT[MINUTE] else HOUR
        yield from _rows(span, hour, NOBODY, age, HOUR)


def _rows(span: int, minute: int, writer: int, age: int, length: float) -> Iterator[Statistic]:
    """Yield the rows of all tasks, for so many usual minutes."""
    for traffic in (*ENQUEUED, *OTHERS):
        number = _number(traffic.per_minute * length * _share_of_day(age))
        examples = min(number, EXAMPLES)
        if examples:
            tally = _tally(traffic, examples, is_troubled=_is_troubled(traffic, age))
            _multiply(tally, number / examples)
            yield Statistic(
                span=span,
                minute=minute,
                stored_minute=minute,
                queue_name=traffic.queue,
                task_path=traffic.path,
                writer=writer,
                **tally.values(),
            )


def _samples(present: int) -> Iterator[Sample]:
    for age in range(1, WEEK + DAY):
        minute = present - age
        if age > MINUTES and minute % (10 if age <= DAY else HOUR):
            continue
        is_troubled = any(age in each for each in TROUBLE)
        ready = random.randint(45, 70) if is_troubled else _number(6 * _share_of_day(age))
        wait = random.randint(20_000, 40_000) if is_troubled else random.randint(5, 900)
        yield Sample(
            minute=minute,
            queue_name=ALL,
            ready=ready,
            oldest_wait_ms=wait if ready else 0,
            scheduled=random.randint(3, 9),
            blocked=random.randint(1, 6),
            running=random.randint(2, 7),
            failed=random.randint(40, 60),
        )


def _share_of_day(age: int) -> float:
    """Return how busy the shop was, compared with now: half as much half a day ago."""
    return (0.75 + 0.25 * math.cos(2 * math.pi * age / DAY)) * random.uniform(0.9, 1.1)


def _number(expected: float) -> int:
    """Return a whole number that is ``expected`` on average."""
    return math.floor(expected + random.random())


def _is_troubled(traffic: Traffic, age: int) -> bool:
    return traffic.queue == "payments" and any(age in each for each in TROUBLE)


def _tally(traffic: Traffic, number: int, *, is_troubled: bool) -> Tally:
    tally = Tally()
    failed = 0.6 if is_troubled else traffic.failed
    for _ in range(number):
        chance = random.random()
        if chance < failed:
            tally.failed += 1
        elif chance < failed + traffic.retried:
            tally.retried += 1
        else:
            tally.finished += 1
        spread = random.lognormvariate(0, 0.4)
        tally.note_run(int(traffic.run * spread * (8 if is_troubled else 1)))
        tally.note_wait(int(traffic.wait * spread * (100 if is_troubled else 1)))
    return tally


def _multiply(tally: Tally, factor: float) -> None:
    for name in SUMS:
        setattr(tally, name, round(getattr(tally, name) * factor))
    for name in HISTOGRAMS:
        setattr(tally, name, [round(each * factor) for each in getattr(tally, name)])
