"""Statistics in the database: storing them, rolling them up, and sampling queues."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import connections
from django.db.models import Sum

from steady_queue_core.dialects.registry import dialect_for
from steady_queue_core.models import ReadyExecution, Sample, Statistic
from steady_queue_core.statistics import recent_hours, storage
from steady_queue_core.statistics import sampler as sampler_module
from steady_queue_core.statistics import sums as sums_module
from steady_queue_core.statistics.recent_hours import RecentHours, sum_up
from steady_queue_core.statistics.sampler import Sampler
from steady_queue_core.statistics.storage import RollUp, roll_up, store
from steady_queue_core.statistics.sums import Sums
from steady_queue_core.statistics.tally import (
    ALL_TIME,
    HOUR,
    MINUTE,
    QUARTER_SUM,
    RECENT_HOUR,
    Tally,
)

from .everywhere import Jobs, on_every_database


def row(minute: int, finished: int = 1, *, writer: int = 7, **named: Any) -> Statistic:
    tally = Tally(finished=finished, run_ms=10 * finished, run_max=finished)
    tally.run_histogram[3] = finished
    key = {"queue_name": "mail", "task_path": "shop.send", "span": MINUTE, **named}
    return Statistic(
        minute=minute, writer=writer, **{"stored_minute": minute, **key}, **tally.values()
    )


def keep(using: str, *rows: Statistic) -> None:
    store(connections[using], dialect_for(using), rows)


def present_minute(using: str) -> int:
    return int(Jobs.present(using).timestamp() // 60)


def kept(using: str) -> list[tuple[int, int, str, int, int]]:
    """Return span, minute, queue, finished and run_max of all rows."""
    rows = Statistic.objects.using(using).order_by("span", "minute", "queue_name", "writer")
    return list(rows.values_list("span", "minute", "queue_name", "finished", "run_max"))


@on_every_database
def test_what_is_stored_again_is_not_counted_twice(using: str) -> None:
    keep(using, row(10, 1), row(11, 5))
    keep(using, row(10, 1))
    keep(using, row(10, 3))
    keep(using, row(10, 100, writer=8))
    total = Statistic.objects.using(using).aggregate(Sum("finished"))
    assert total == {"finished__sum": 3 + 5 + 100}


@on_every_database
def test_old_minutes_become_hours_which_end(using: str) -> None:
    present = present_minute(using)
    hour = (present - 72 * 60) // 60 * 60
    ancient = (present - 100 * 24 * 60) // 60 * 60
    keep(
        using,
        row(hour, 1), row(hour + 59, 2), row(hour + 5, 4, writer=8), row(hour + 60, 8),
        row(hour, 16, queue_name="other"), row(present, 32), row(ancient, 64, span=HOUR, writer=0),
    )  # fmt: skip
    connection, dialect = connections[using], dialect_for(using)
    while roll_up(connection, dialect):
        pass
    assert kept(using) == [
        (MINUTE, present, "mail", 32, 32),
        (HOUR, hour, "mail", 7, 4),
        (HOUR, hour, "other", 16, 16),
        (HOUR, hour + 60, "mail", 8, 8),
    ]
    # A minute that is late is added to what is there.
    keep(using, row(hour + 1, 1, writer=9))
    while roll_up(connection, dialect):
        pass
    assert (HOUR, hour, "mail", 8, 4) in kept(using)
    [merged] = Statistic.objects.using(using).filter(span=HOUR, minute=hour, queue_name="mail")
    assert Tally.of(merged).run_histogram[3] == 8
    assert merged.writer == 0


@on_every_database
def test_totals_of_processes_that_have_ended_are_added_up(using: str) -> None:
    present = present_minute(using)

    def total(writer: int, finished: int, age: int) -> Statistic:
        return row(0, finished, writer=writer, span=ALL_TIME, stored_minute=present - age)

    connection, dialect = connections[using], dialect_for(using)
    keep(using, total(1, 1, 119), total(2, 2, 130), total(3, 4, 500))
    while roll_up(connection, dialect):
        pass
    assert sorted(kept(using)) == [(0, 0, "mail", 1, 1), (0, 0, "mail", 6, 4)]
    keep(using, total(1, 8, 125), total(4, 16, 0))
    while roll_up(connection, dialect):
        pass
    assert sorted(kept(using)) == [(0, 0, "mail", 14, 8), (0, 0, "mail", 16, 16)]


@on_every_database
def test_two_dispatchers_roll_up_nothing_twice(using: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "BATCH", 7)
    hour = (present_minute(using) - 72 * 60) // 60 * 60
    keep(using, *(row(hour + at % 60, 1, writer=at) for at in range(120)))
    errors: list[BaseException] = []

    def work() -> None:
        connection, dialect = connections[using], dialect_for(using)
        try:
            for _ in range(60):
                try:
                    if not roll_up(connection, dialect):
                        return
                except Exception as error:
                    if not dialect.is_contention(connection, error):
                        raise
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for each in workers:
        each.start()
    for each in workers:
        each.join(60)
    assert errors == []
    assert kept(using) == [(HOUR, hour, "mail", 120, 1)]


@on_every_database
def test_a_roll_up_that_fails_changes_nothing(using: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hour = (present_minute(using) - 72 * 60) // 60 * 60
    keep(using, row(hour, 1), row(hour + 1, 2))
    before = kept(using)
    calls = []
    original = storage._add

    def failing(*arguments: Any) -> None:
        original(*arguments)
        calls.append(1)
        raise RuntimeError

    monkeypatch.setattr(storage, "_add", failing)
    with pytest.raises(RuntimeError):
        roll_up(connections[using], dialect_for(using))
    assert calls
    assert kept(using) == before


@on_every_database
def test_it_is_done_now_and_then(using: str) -> None:
    hour = (present_minute(using) - 72 * 60) // 60 * 60
    keep(using, row(hour, 1))
    upkeep = RollUp()
    connection, dialect = connections[using], dialect_for(using)
    assert upkeep.do(connection, dialect) == 0.0
    assert 500 < upkeep.do(connection, dialect) <= RollUp.INTERVAL


@on_every_database
def test_rows_of_nonsense_count_as_nothing(using: str) -> None:
    hour = (present_minute(using) - 72 * 60) // 60 * 60
    keep(using, row(hour, 1))
    Statistic.objects.using(using).update(run_histogram="'; --,zz", finished=-5)
    roll_up(connections[using], dialect_for(using))
    assert kept(using) == [(HOUR, hour, "mail", 0, 1)]


@on_every_database
def test_one_dispatcher_samples_a_minute(using: str) -> None:
    jobs = Jobs(using)
    jobs.failed(1)
    jobs.claimed(2, queue_name="first")
    jobs.ready(3, queue_name="first")
    jobs.ready(1, queue_name="second")
    connection, dialect = connections[using], dialect_for(using)
    ReadyExecution.objects.using(using).filter(queue_name="second").update(
        created_at=Jobs.present(using) - timedelta(minutes=5)
    )
    first, second = Sampler(), Sampler()
    assert 0 < first.do(connection, dialect) <= 60
    jobs.ready(10, queue_name="first")
    second.do(connection, dialect)
    # The minute may have turned meanwhile: then both have sampled.
    [total, *queues] = Sample.objects.using(using).order_by("minute", "queue_name")[:3]
    assert (total.queue_name, total.ready, total.running, total.failed) == ("", 4, 2, 1)
    assert (total.scheduled, total.blocked) == (0, 0)
    assert [(each.queue_name, each.ready, each.running) for each in queues] == [
        ("first", 3, None), ("second", 1, None),
    ]  # fmt: skip
    assert 300_000 <= queues[1].oldest_wait_ms < 400_000
    assert queues[0].oldest_wait_ms < 100_000
    assert total.oldest_wait_ms == queues[1].oldest_wait_ms


@on_every_database
def test_jobs_are_counted_outside_of_transactions_and_once_a_minute(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, dialect = connections[using], dialect_for(using)
    counted: list[bool] = []

    def watch(name: str) -> None:
        count = getattr(sampler_module, name)

        def watched(*arguments: Any, **options: Any) -> Any:
            counted.append(connection.in_atomic_block)
            return count(*arguments, **options)

        monkeypatch.setattr(sampler_module, name, watched)

    watch("count_each"), watch("count_ready")
    minute = present_minute(using)
    for _ in range(2):
        Sampler().do(connection, dialect)
    assert not any(counted)
    assert len(counted) == 2 or present_minute(using) > minute


def test_the_time_of_a_damaged_row_is_not_told(db: None) -> None:
    jobs = Jobs("default")
    jobs.ready(3)
    with connections["default"].cursor() as cursor:
        cursor.execute("UPDATE steady_queue_ready_executions SET created_at = 'yesterday'")
    Sampler().do(connections["default"], dialect_for("default"))
    sample = Sample.objects.get(queue_name="default")
    assert (sample.ready, sample.oldest_wait_ms) == (3, 0)


@on_every_database
def test_old_samples_are_thinned_out(using: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_module, "BATCH", 40)
    present = present_minute(using)
    hour = (present - 60 * 60) // 60 * 60
    minutes = [present - 100 * 24 * 60, *range(hour, hour + 65), present - 1]
    Sample.objects.using(using).bulk_create(
        Sample(minute=each, queue_name="", ready=0, oldest_wait_ms=0) for each in minutes
    )
    for _ in range(3):
        Sampler().do(connections[using], dialect_for(using))
    left = Sample.objects.using(using).filter(minute__lt=present).order_by("minute")
    assert list(left.values_list("minute", flat=True)) == [hour, hour + 60, present - 1]


@on_every_database
def test_hours_that_are_over_are_summed_up_beside_their_minutes(using: str) -> None:
    connection, dialect = connections[using], dialect_for(using)
    present = present_minute(using)
    over = present // 60 * 60 - 60
    long_past, rolled_up = over - 70 * 60, (present - 48 * 60) // 60 * 60
    keep(
        using,
        row(over - 120, 1), row(over - 61, 2, writer=8), row(over - 70, 4, queue_name="other"),
        row(rolled_up, 8), row(long_past, 16, span=RECENT_HOUR, writer=0), row(present, 32),
    )  # fmt: skip
    for _ in range(2):
        while sum_up(connection, dialect):
            pass
    wanted = [
        (RECENT_HOUR, over - 120, "mail", 3, 2),
        (RECENT_HOUR, over - 120, "other", 4, 4),
    ]
    # At the full hour, the first hour is a whole one.
    assert [
        each for each in kept(using) if each[0] == RECENT_HOUR and each[1] != rolled_up
    ] == wanted
    assert Statistic.objects.using(using).filter(span=MINUTE).count() == 5
    # What is stored late after an outage is in an hour that was not summed up yet.
    keep(using, row(over - 30, 64))
    sum_up(connection, dialect)
    assert [each for each in kept(using) if each[0] == RECENT_HOUR][-1] == (
        RECENT_HOUR, over - 60, "mail", 64, 64,
    )  # fmt: skip


@on_every_database
def test_an_hour_is_summed_up_once_processes_have_stored_its_counts(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = present_minute(using)
    hour = present // 60 * 60 - 60
    keep(using, row(hour + 30, 1))
    monkeypatch.setattr(recent_hours, "GRACE", present - hour - 60 + 5)
    assert sum_up(connections[using], dialect_for(using)) == 0
    monkeypatch.setattr(recent_hours, "GRACE", 0)
    assert sum_up(connections[using], dialect_for(using)) == 1
    while sum_up(connections[using], dialect_for(using)):
        pass  # Six hours that may be over, too.
    assert 200 < RecentHours().do(connections[using], dialect_for(using)) <= RecentHours.INTERVAL


@on_every_database
def test_an_hour_is_summed_up_again_if_counts_of_it_are_stored_late(using: str) -> None:
    connection, dialect = connections[using], dialect_for(using)
    hour = present_minute(using) // 60 * 60 - 4 * 60
    keep(using, row(hour + 5, 1), row(hour + 65, 2), row(hour + 130, 4))
    while sum_up(connection, dialect):
        pass
    # After an outage; of the second hour, the same as before.
    keep(using, row(hour + 7, 8), row(hour + 130, 16, writer=8))
    while sum_up(connection, dialect):
        pass
    assert [each[1::2] for each in kept(using) if each[0] == RECENT_HOUR] == [
        (hour, 9), (hour + 60, 2), (hour + 120, 20),
    ]  # fmt: skip
    assert sum_up(connection, dialect) == 0


@on_every_database
def test_an_hour_of_a_clock_that_was_ahead_does_not_stop_the_sums(using: str) -> None:
    present = present_minute(using)
    keep(using, row(present - 130, 1), row(present + 6_000, 2, span=RECENT_HOUR, writer=0))
    assert sum_up(connections[using], dialect_for(using)) == 1


def sums(using: str, span: int) -> list[tuple[int, str, int]]:
    """Return minute, queue and finished of the sums of a span."""
    return [(each[1], each[2], each[3]) for each in kept(using) if each[0] == span]


def sum_all_up(using: str) -> None:
    while sum_up(connections[using], dialect_for(using)):
        pass


@on_every_database
def test_six_hours_that_are_over_are_summed_up_beside_them(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = present_minute(using)
    quarter = present // 360 * 360
    keep(
        using,
        row(quarter - 300, 1), row(quarter - 1, 2), row(quarter - 1, 4, queue_name="other"),
        row(quarter + 1, 8),
        # Of five days ago; of one hour there is the sum of its minutes, too.
        row(quarter - 20 * 360, 16, span=HOUR, writer=0),
        row(quarter - 20 * 360 + 60, 32, span=HOUR, writer=0),
        row(quarter - 20 * 360 + 60, 32, span=RECENT_HOUR, writer=0),
        row(quarter - 34 * 360, 64, span=HOUR, writer=0),
        row(quarter - 34 * 360, 64, span=QUARTER_SUM, writer=0),
    )  # fmt: skip
    monkeypatch.setattr(sums_module, "GRACE", 10_000)
    sum_all_up(using)
    assert sums(using, QUARTER_SUM) == []
    monkeypatch.setattr(sums_module, "GRACE", 0)
    monkeypatch.setattr(recent_hours, "GRACE", 0)
    sum_all_up(using)
    assert sums(using, QUARTER_SUM) == [
        (quarter - 20 * 360, "mail", 48), (quarter - 360, "mail", 3), (quarter - 360, "other", 4),
    ]  # fmt: skip


@on_every_database
def test_six_hours_are_not_summed_up_before_all_minutes_are(using: str) -> None:
    present = present_minute(using)
    rolled_up = present // 360 * 360 - 10 * 360
    keep(using, row(rolled_up + 1, 1), row(rolled_up + 60, 2, span=HOUR, writer=0))
    sum_all_up(using)
    assert sums(using, QUARTER_SUM) == []
    while roll_up(connections[using], dialect_for(using)):
        pass
    sum_all_up(using)
    assert sums(using, QUARTER_SUM) == [(rolled_up, "mail", 3)]


@on_every_database
def test_six_hours_are_summed_up_again_if_counts_of_them_are_stored_late(using: str) -> None:
    quarter = present_minute(using) // 360 * 360 - 4 * 360
    minutes = [row(quarter + number * 360, 1) for number in range(3)]
    keep(using, *minutes)
    sum_all_up(using)
    assert sums(using, QUARTER_SUM) == [(each.minute, "mail", 1) for each in minutes]
    keep(using, row(quarter + 361, 2))
    # The pages read no hours before the last sum: there is none after one that is missing.
    assert sums(using, QUARTER_SUM) == [(quarter, "mail", 1)]
    sum_all_up(using)
    assert [each[-1] for each in sums(using, QUARTER_SUM)] == [1, 3, 1]


@on_every_database
def test_sums_that_were_made_while_the_clock_was_ahead_are_made_again(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sums_module, "GRACE", 0)
    monkeypatch.setattr(recent_hours, "GRACE", 0)
    present = present_minute(using)
    quarter = present // 360 * 360
    ahead = {"writer": 0, "stored_minute": present + 500}
    keep(using, row(quarter - 100, 1), row(quarter - 90, 2))
    for span, minute in ((RECENT_HOUR, quarter - 120), (QUARTER_SUM, quarter - 360)):
        keep(using, row(minute, 1, span=span, **ahead))
    keep(using, row(quarter + 360, 4, span=QUARTER_SUM, **ahead))
    sum_all_up(using)
    assert sums(using, QUARTER_SUM) == [(quarter - 360, "mail", 3)]
    assert sums(using, RECENT_HOUR) == [(quarter - 120, "mail", 3)]


@on_every_database
@pytest.mark.parametrize("span", [RECENT_HOUR, QUARTER_SUM])
def test_what_is_stored_while_it_is_summed_up_is_not_left_out(using: str, span: int) -> None:
    quarter = present_minute(using) // 360 * 360 - 4 * 360
    keep(using, row(quarter + 5, 1))
    if span == QUARTER_SUM:
        assert sum_up(connections[using], dialect_for(using)) == 1
    late = [row(quarter + 5, 2, writer=8)]
    add = Sums.add

    def add_late(of: Sums, rows: Any) -> None:
        parts = list(rows)
        add(of, parts)
        if parts and late:
            keep(using, late.pop())

    with mock.patch.object(Sums, "add", add_late):
        sum_all_up(using)
    assert sums(using, span) == [(quarter, "mail", 3)]


@on_every_database
def test_many_sums_are_stored_all_or_none(using: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hour = present_minute(using) // 60 * 60 - 4 * 60
    keep(using, *(row(hour + 5, 1, queue_name=f"q{number}") for number in range(5)))
    monkeypatch.setattr(sums_module, "BATCH", 2)
    stored: list[Any] = []

    def fail(*given: Any) -> None:
        stored.append(given)
        if len(stored) == 2:
            raise LookupError
        store(*given)

    with mock.patch.object(sums_module, "store", fail), pytest.raises(LookupError):
        sum_all_up(using)
    assert sums(using, RECENT_HOUR) == []
    sum_all_up(using)
    assert len(sums(using, RECENT_HOUR)) == 5


@pytest.mark.django_db(transaction=True)
def test_times_of_nonsense_do_not_stop_the_sums() -> None:
    hour = present_minute("default") // 360 * 360 - 4 * 360
    keep("default", row(hour + 5, 1))
    for span in (MINUTE, HOUR, RECENT_HOUR):
        keep("default", row(hour + 1_000, 1, span=span, writer=3))
    with connections["default"].cursor() as cursor:
        cursor.execute("UPDATE steady_queue_statistics SET minute = 'x' WHERE writer = 3")
    keep("default", row(hour - 360 + 7, 2, span=HOUR, writer=0))
    sum_all_up("default")
    found = [each[3] for each in kept("default") if each[0] == QUARTER_SUM]
    assert found == [2, 1]
