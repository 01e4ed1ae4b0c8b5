"""Counting in the memory of a process, and the text of histograms."""

from __future__ import annotations

import math
from typing import Any

import pytest

from steady_queue_core.dialects import ClaimedJob, Ending, Outcome
from steady_queue_core.statistics import collector as collector_module
from steady_queue_core.statistics import histogram
from steady_queue_core.statistics.collector import Collector
from steady_queue_core.timezones import EPOCH, from_microseconds

#: Minute 1,000.
NOW = 60_000.0


def at(seconds: float) -> Any:
    return from_microseconds(round(seconds * 1e6))


def claim(**changes: Any) -> ClaimedJob:
    made = ClaimedJob(
        job_id=1, token=1, queue_name="mail", rank=0, task_path="shop.send",
        backend_name="default", arguments="", attempts=0, max_attempts=3, worker_ids=None,
        errors=None, enqueued_at=at(NOW - 3), started_at=None, claimed_at=at(NOW - 1),
    )  # fmt: skip
    return made._replace(**changes)


def outcome(ending: Ending = Ending.FINISHED, **changes: Any) -> Outcome:
    made = Outcome(
        ending, 1, 1, "mail", 0, attempts=1, started_at=at(NOW - 1), last_attempted_at=at(NOW - 1)
    )
    return made._replace(**changes)


def counted(*pairs: tuple[ClaimedJob, Outcome], now: float = NOW) -> Any:
    collector = Collector()
    for job, ending in pairs:
        collector.add(job, ending, now, now)
    [total, row] = collector.rows()
    assert (total.span, total.minute, total.stored_minute) == (0, 0, int(now // 60))
    for name in ("finished", "failed", "run_ms", "wait_histogram"):
        assert getattr(total, name) == getattr(row, name)
    return row


def of_minutes(collector: Collector) -> list[Any]:
    return [row for row in collector.rows() if row.span == 1]


def of_all_time(collector: Collector) -> list[Any]:
    return [row for row in collector.rows() if row.span == 0]


def test_each_ending_is_counted() -> None:
    row = counted(
        (claim(), outcome()),
        (claim(), outcome(Ending.FAILED)),
        (claim(attempts=1), outcome(Ending.RETRIED, attempts=2)),
        (claim(), outcome(Ending.RELEASED, attempts=0)),
        # A rate has put it off: no attempt was made.
        (claim(), outcome(Ending.RETRIED, attempts=0, last_attempted_at=None)),
    )
    assert (row.span, row.minute, row.queue_name, row.task_path) == (1, 1000, "mail", "shop.send")
    assert (row.finished, row.failed, row.retried, row.released) == (1, 1, 1, 2)
    assert (row.enqueued, row.lost) == (2, 0)
    assert (row.run_ms, row.run_max) == (3000, 1000)
    assert (row.wait_ms, row.wait_max) == (4000, 2000)
    assert histogram.read(row.run_histogram)[10] == 3  # Up to 1,024 ms.
    assert histogram.read(row.wait_histogram)[11] == 2


def test_an_attempt_ends_when_its_result_arrives() -> None:
    collector = Collector()
    collector.add(claim(), outcome(), NOW + 30, NOW + 1)
    [row] = of_minutes(collector)
    assert row.run_ms == 2000


@pytest.mark.parametrize("instant", [None, "yesterday", 5, EPOCH.replace(tzinfo=None)])
def test_instants_of_damaged_rows_do_not_matter(instant: Any) -> None:
    assert counted((claim(enqueued_at=instant), outcome())).finished == 1
    assert counted((claim(), outcome(last_attempted_at=instant))).finished == 1


def test_names_of_damaged_rows_do_not_matter() -> None:
    collector = Collector()
    for path in (b"\0\xff", "shop.send"):
        collector.add(claim(task_path=path), outcome(), NOW, NOW)
    assert [row.finished for row in collector.rows()] == [1, 1, 1, 1]


def test_it_is_due_after_a_while_and_when_the_minute_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    present = 100.0
    monkeypatch.setattr(collector_module.time, "monotonic", lambda: present)
    collector = Collector()
    assert collector.until_due == math.inf
    collector.add(claim(), outcome(), NOW, NOW)
    assert collector.until_due == collector_module.INTERVAL
    collector.rows()
    collector.note_stored()
    assert collector.until_due == math.inf
    collector.add(claim(), outcome(), NOW + 1, NOW)
    present += 4
    assert collector.until_due == collector_module.INTERVAL - 4
    collector.add(claim(), outcome(), NOW + 60, NOW)
    assert collector.until_due == 0
    rows = of_minutes(collector)
    assert [(row.minute, row.finished) for row in rows] == [(1000, 2), (1001, 1)]


def test_the_totals_of_a_minute_are_stored_again_and_again() -> None:
    collector = Collector()
    for number in range(1, 4):
        collector.add(claim(), outcome(), NOW + number, NOW)
        assert [row.finished for row in collector.rows()] == [number, number]
        collector.note_stored()
    assert collector.rows() == []


def test_totals_go_on_through_minutes_and_failed_stores() -> None:
    collector = Collector()
    for number in range(1, 7):
        collector.add(claim(), outcome(), NOW + 40 * number, NOW)
        [total] = of_all_time(collector)
        assert total.finished == number
        if number % 2:
            collector.note_stored()


def test_after_a_long_pause_it_is_another_writer() -> None:
    """The totals of the former one may have been added up with those of others."""
    collector = Collector()
    collector.add(claim(), outcome(), NOW, NOW)
    [first] = of_all_time(collector)
    collector.note_stored()
    collector.add(claim(), outcome(), NOW + 59 * 60, NOW)
    [second] = of_all_time(collector)
    assert (second.writer, second.finished) == (first.writer, 2)
    # This one could not be stored.
    collector.add(claim(), outcome(), NOW + 61 * 60, NOW)
    [third] = of_all_time(collector)
    assert third.writer != first.writer
    assert third.finished == 2


def test_totals_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_module, "MOST_SERIES", 10)
    collector = Collector()
    for number in range(100):
        collector.add(claim(task_path=f"task{number}"), outcome(), NOW + 60 * number, NOW)
        rows = of_all_time(collector)
        collector.note_stored()
    assert (rows[0].task_path, rows[0].finished) == ("", 80)


def test_a_clock_that_goes_back_replaces_no_row() -> None:
    collector = Collector()
    collector.add(claim(), outcome(), NOW - 0.001, NOW)
    collector.add(claim(), outcome(), NOW, NOW)
    stored = {row.minute: row.finished for row in of_minutes(collector)}
    collector.note_stored()
    collector.add(claim(), outcome(), NOW - 0.001, NOW)
    stored |= {row.minute: row.finished for row in of_minutes(collector)}
    assert stored == {999: 1, 1000: 2}


def test_what_is_not_stored_is_kept_for_a_day() -> None:
    collector = Collector()
    collector.add(claim(), outcome(), NOW, NOW)
    collector.add(claim(), outcome(), NOW + 3600, NOW)
    assert [row.minute for row in of_minutes(collector)] == [1000, 1060]
    collector.add(claim(), outcome(), NOW + 86_400 + 120, NOW)
    assert [row.minute for row in of_minutes(collector)] == [1060, 2442]


def test_too_many_tasks_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_module, "MOST_SERIES", 10)
    collector = Collector()
    for number in range(100):
        collector.add(claim(task_path=f"task{number}"), outcome(), NOW, NOW)
    for number in range(100):
        ending = outcome(queue_name=f"queue{number}")
        collector.add(claim(task_path="x"), ending, NOW, NOW)
    rows = of_minutes(collector)
    assert len(rows) <= 21
    assert sum(row.finished for row in rows) == 200


@pytest.mark.parametrize(
    ("milliseconds", "position"),
    [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1024, 10), (1025, 11), (2**19, 19),
     (2**19 + 1, 20), (10**12, 20)],
)  # fmt: skip
def test_the_counter_of_a_duration(milliseconds: int, position: int) -> None:
    assert histogram.slot(milliseconds) == position
    if position < len(histogram.BOUNDS):
        assert milliseconds <= histogram.BOUNDS[position]


@pytest.mark.parametrize(
    "counters", [[0] * 21, [1] + [0] * 20, [0] * 20 + [5], [36, 0, 1295, *[10**12] * 18]]
)
def test_histograms_come_back(counters: list[int]) -> None:
    text = histogram.write(counters)
    assert len(text) <= 400
    assert histogram.read(text) == counters


@pytest.mark.parametrize("text", [None, 5, "", "-1", "٣", "z" * 1000, "1;2", ", ,", b"1"])
def test_nonsense_is_no_count(text: Any) -> None:
    assert histogram.read(text) == [0] * histogram.SIZE


def test_ten_is_not_one() -> None:
    """Zeros at the end of a number are none of the text's."""
    assert histogram.read(histogram.write([36, *[0] * 20]))[0] == 36
