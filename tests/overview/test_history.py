"""What the page tells of the past: steps, rates, quantiles, by the rows of statistics."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from steady_queue_core.models import Queue, RecurringTask, Sample, Statistic
from steady_queue_core.overview import WINDOWS, history_rows, queues
from steady_queue_core.overview.total import Total
from steady_queue_core.statistics import histogram
from steady_queue_core.statistics.histogram import quantile
from steady_queue_core.statistics.tally import HOUR, QUARTER_SUM, RECENT_HOUR

from ..models.everywhere import on_every_database
from .planting import TASK, Garden

DAY, WEEK = WINDOWS["24h"], WINDOWS["7d"]


@on_every_database
def test_an_hour_is_shown_by_minutes_of_all_processes(using: str, garden: Garden) -> None:
    garden.count(3, finished=4, failed=1, retried=2, writer=1)
    garden.count(3, finished=6, writer=2)
    garden.count(59, "other", "t", finished=1)
    garden.count(61, finished=1000)
    seen = garden.look()
    assert len(seen.history.steps) == 60
    step = seen.history.steps[seen.moment.minute - 3]
    assert (step.finished, step.failed, step.retried) == (10, 1, 2)
    assert sum(each.finished for each in seen.history.steps.values()) == 11
    assert [(path, total.ended) for path, total in seen.tasks] == [(TASK, 11), ("t", 1)]
    total = seen.history.by_task[TASK]
    assert (total.failed_share, total.retried_share) == (1 / 11, 2 / 13)
    assert total.run_mean == 100
    assert seen.finished_rate == 1.0


@on_every_database
def test_a_day_and_a_week_are_shown_by_hours(using: str, garden: Garden) -> None:
    garden.count(3, finished=1)
    garden.count(50, finished=2, writer=8)
    garden.count(50, span=RECENT_HOUR, finished=3, writer=0)
    garden.count(20 * 60, span=RECENT_HOUR, finished=8, writer=0)
    garden.count(30 * 60, span=RECENT_HOUR, finished=16, writer=0)
    # The minutes have become an hour, and their sum is not gone yet.
    garden.count(50 * 60, span=RECENT_HOUR, finished=32, writer=0)
    garden.count(50 * 60, span=HOUR, finished=32, writer=0)
    garden.count(100 * 60, span=HOUR, finished=64, writer=0)
    garden.count(10 * 24 * 60, span=HOUR, finished=128, writer=0)
    day, week = garden.look(window=DAY), garden.look(window=WEEK)
    assert len(day.history.steps) == 24
    # It begins with a quarter of a day, two hours later than a week ago.
    assert (len(week.history.steps), len(week.history.timed_steps)) == (167, 28)
    # The minutes of an hour that was summed up are not counted once more.
    assert sum(each.finished for each in day.history.steps.values()) == 1 + 3 + 8
    assert sum(each.finished for each in week.history.steps.values()) == 1 + 3 + 8 + 16 + 32 + 64
    assert day.history.by_task[TASK].finished == 12
    assert [each.finished for each in day.history.steps.values()][-2:] == [3, 1]


@on_every_database
def test_a_week_is_added_up_by_quarters_of_days(using: str, garden: Garden) -> None:
    # The present hour is the fifth of its quarter.
    garden.count(3, finished=1)
    garden.count(90, span=RECENT_HOUR, finished=2, runs=3_000)
    for ago, number in ((5, 4), (6, 8), (10, 16)):
        garden.count(ago * 60, span=RECENT_HOUR, finished=number)
    garden.count(10 * 60, span=QUARTER_SUM, finished=28, runs=50)
    # Their minutes have become hours, and there is no sum of the six.
    garden.count(29 * 60, span=HOUR, finished=32, runs=50)
    garden.count(29 * 60, "other", "t", span=QUARTER_SUM, finished=64, runs=50)
    garden.count(29 * 60, "other", "t", span=HOUR, finished=64, runs=50)
    garden.count(29 * 60, "mail", span=QUARTER_SUM, finished=32, runs=50)
    seen = garden.look(window=WEEK).history
    first = seen.minute // 60 * 60
    assert {(first - at) // 60: each.finished for at, each in seen.steps.items() if each.ended} == {
        29: 96, 10: 16, 6: 8, 5: 4, 2: 2, 0: 1,
    }  # fmt: skip
    assert {
        (first - at) // 60: (each.finished, each.run_max)
        for at, each in seen.timed_steps.items()
        if each.ended
    } == {34: (96, 50), 10: (28, 50), 4: (3, 3_000)}
    assert {task: each.finished for task, each in seen.by_task.items()} == {TASK: 63, "t": 64}
    assert seen.day_before.finished == 30
    other = garden.look(window=WEEK, queue="other").history
    assert [each.finished for each in other.steps.values() if each.ended] == [64]
    assert (other.total.finished, other.usual[TASK].finished) == (64, 63)
    assert other.day_before.finished == 30
    assert {"t", TASK} <= other.known_tasks


@on_every_database
def test_the_last_failure_of_a_week_is_told_by_the_hour(using: str, garden: Garden) -> None:
    for ago in (6, 8):
        garden.count(ago * 60, span=RECENT_HOUR, failed=1)
    garden.count(5 * 60, "other", "t", span=RECENT_HOUR, failed=1)
    garden.count(50 * 60, span=HOUR, failed=1)
    garden.count(6 * 60, span=QUARTER_SUM, failed=2)
    hour = garden.minute // 60 * 60
    assert garden.look(window=WEEK).history.by_task[TASK].last_failure == hour - 6 * 60
    garden.count(3, failed=1)
    assert garden.look(window=WEEK).history.by_task[TASK].last_failure == garden.minute - 3


@pytest.mark.django_db(transaction=True)
def test_hours_of_nonsense_count_as_nothing(garden: Garden) -> None:
    garden.count(30 * 60, span=HOUR, failed=3, finished=7)
    with garden.connection.cursor() as cursor:
        cursor.execute("UPDATE steady_queue_statistics SET failed = 'many', retried = -4")
    seen = garden.look(window=WEEK).history
    step = next(each for each in seen.steps.values() if each.attempts)
    assert (step.finished, step.failed, step.retried) == (7, 0, 0)


@on_every_database
def test_hours_after_the_last_six_that_are_summed_up_are_added(using: str, garden: Garden) -> None:
    garden.count(100 * 60, span=HOUR, finished=1)
    garden.count(100 * 60, span=QUARTER_SUM, finished=1)
    garden.count(80 * 60, span=HOUR, finished=2)
    garden.count(30 * 60, span=RECENT_HOUR, finished=4)
    seen = garden.look(window=WEEK).history
    assert seen.total.finished == 7
    garden.rows(Statistic).filter(span=QUARTER_SUM).delete()
    assert garden.look(window=WEEK).history.total.finished == 7


@on_every_database
def test_the_day_before_is_the_same_in_each_window(using: str, garden: Garden) -> None:
    garden.count(5 * 60, span=RECENT_HOUR, finished=30, failed=7, retried=3, lost=1)
    garden.count(5 * 60, "other", "t", span=RECENT_HOUR, finished=12, writer=2)
    garden.count(7 * 60, span=RECENT_HOUR, finished=5)
    seen = {garden.look(window=each).history.day_before for each in WINDOWS.values()}
    assert seen == {Total(finished=47, failed=7, retried=3, lost=1)}
    # Their sum is larger than a column.
    for writer in range(3, 6):
        garden.count(6 * 60, span=RECENT_HOUR, finished=1, writer=writer)
    garden.rows(Statistic).filter(writer__gte=3).update(finished=2**62)
    assert garden.look().history.day_before.failed == 7


@on_every_database
def test_an_hour_that_is_not_summed_up_yet_is_shown_by_its_minutes(
    using: str, garden: Garden
) -> None:
    garden.count(25, finished=2)
    garden.count(75, finished=4)
    assert garden.look(window=DAY).history.total.finished == 6


@on_every_database
def test_queues_tell_what_comes_in_and_goes_out(using: str, garden: Garden) -> None:
    garden.claimed(1, queue_name="other"), garden.ready(30, "mail"), garden.ready(2, "new")
    Queue("shut", using).pause()
    garden.sample(10)
    garden.sample(10, "mail", 80)
    for ago in (1, 2, 3, 20):
        garden.count(ago, finished=30, failed=10, enqueued=40)
    mail, new, other, shut = sorted(garden.look().queues, key=lambda each: each.name)
    assert (mail.out_rate, mail.in_rate, mail.spark[-1], sum(mail.spark)) == (12, 7, 40, 160)
    assert mail.time_to_empty == timedelta(minutes=30 / 5)
    assert (new.in_rate, new.time_to_empty) == (0.2, None)
    assert other.running.number == 1
    assert (shut.listed.is_paused, shut.listed.paused_since is None) == (True, False)
    # The queue in which most jobs wait comes first.
    assert [each.name for each in garden.look().queues][:2] == ["mail", "new"]


@on_every_database
def test_what_is_not_known_of_a_queue_is_not_told(using: str, garden: Garden) -> None:
    garden.ready(3, "mail")
    [line] = garden.look().queues
    assert (line.in_rate, line.time_to_empty) == (None, None)
    garden.sample(10)
    [line] = garden.look(task=TASK).queues
    assert line.in_rate is None


@on_every_database
def test_samples_of_another_time_tell_no_rate(using: str, garden: Garden) -> None:
    garden.ready(3, "mail")
    garden.sample(2), garden.sample(2, "mail", 3)
    [line] = garden.look().queues
    assert line.in_rate is None


@pytest.mark.django_db(transaction=True)
def test_more_ready_jobs_than_are_counted_tell_no_rate(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "CAP", 2)
    garden.ready(3, "mail"), garden.sample(10)
    [line] = garden.look().queues
    assert line.in_rate is None


@pytest.mark.django_db(transaction=True)
def test_many_long_queues_are_counted_less_far_each(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "OF_QUEUES", 6)
    garden.ready(3, "mail"), garden.ready(4, "web")
    assert {each.name: each.listed.ready.text for each in garden.look().queues} == {
        "mail": "3",
        "web": "3+",
    }
    garden.ready(1, "third")
    assert [each.listed.ready.text for each in garden.look().queues if each.name == "web"] == ["2+"]


@pytest.mark.django_db(transaction=True)
def test_what_needs_a_look_comes_first(garden: Garden) -> None:
    garden.stop("worker"), garden.start("worker", queues=["mail"], threads=3)
    garden.ready(5, "mail"), garden.ready(1, "lost")
    garden.count(3, "mail", "often", finished=50), garden.count(3, "mail", "bad", failed=1)
    seen = garden.look()
    assert [each.name for each in seen.queues] == ["lost", "mail"]
    assert [each.path for each in seen.tasks] == ["bad", "often"]


@pytest.mark.django_db(transaction=True)
def test_queues_with_jobs_are_counted_before_those_of_the_past(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "MOST", 2)
    garden.count(3, "a", finished=1), garden.ready(1, "b"), garden.ready(1, "c")
    assert [*garden.look().lengths.queues] == ["b", "c"]


@pytest.mark.django_db(transaction=True)
def test_a_run_that_is_past_is_not_due_next(garden: Garden) -> None:
    past = garden.present(garden.using) - timedelta(hours=1)
    row = garden.rows(RecurringTask).create(
        key="daily", task_path=TASK, schedule="0 6 * * *", timezone="UTC", arguments="{}",
        backend_name="default", queue_name="default", created_at=past, updated_at=past,
    )  # fmt: skip
    assert [each.key for each in garden.look().schedules or ()] == ["daily"]
    row.overlap, row.waiting_at, row.ends_at = "queue", past, past
    row.save()
    assert garden.look().schedules == []


@on_every_database
def test_samples_are_shown_as_densely_as_the_window_is_long(using: str, garden: Garden) -> None:
    for ago in (0, 5, 20, 30, 80, 100 * 60 + 20, 9 * 24 * 60 + 20):
        garden.sample(ago, ready=ago)
    seen = {
        name: sorted(garden.minute - at for at in garden.look(window=window).history.samples)
        for name, window in WINDOWS.items()
    }
    assert seen == {"1h": [0, 5, 20, 30], "24h": [0, 20, 30, 80], "7d": [20, 80, 6020]}


@on_every_database
def test_a_scope_leaves_out_other_queues_and_tasks(using: str, garden: Garden) -> None:
    garden.count(3, "mail", "a", finished=1)
    garden.count(3, "mail", "b", finished=2)
    garden.count(3, "web", "a", finished=4)
    [claim] = garden.claimed(1, queue_name="web", task_path="a")
    assert garden.look(queue="mail").history.total.finished == 3
    seen = garden.look(task="a")
    assert seen.history.total.finished == 5
    assert [each.job_id for each in seen.longest] == [claim.job_id]
    assert garden.look(queue="mail", task="a").history.total.finished == 1
    assert garden.look(queue="mail").longest == []
    assert [each.name for each in garden.look(queue="mail").queues] == ["mail"]
    # Problems and numbers are of everything.
    seen = garden.look(queue="mail", task="b")
    assert (seen.history.last_hour.finished, seen.finished_rate) == (7, 0.7)


@pytest.mark.django_db(transaction=True)
def test_rows_of_nonsense_count_as_nothing(garden: Garden) -> None:
    garden.count(3, finished=1)
    garden.count(3, "other", finished=1)
    Statistic.objects.filter(queue_name="mail").update(finished=-4, run_histogram="'; --,zz")
    with garden.connection.cursor() as cursor:
        cursor.execute("UPDATE steady_queue_statistics SET failed = 'many', run_max = 1e300")
        cursor.execute("UPDATE steady_queue_statistics SET minute = 'x' WHERE queue_name = 'other'")
    Sample.objects.create(minute=garden.minute, queue_name="", ready=-1, oldest_wait_ms=-1)
    seen = garden.look()
    assert seen.history.by_task[TASK].attempts == 0
    assert seen.history.samples[seen.moment.minute] == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_the_latest_of_very_many_rows_are_read(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_rows, "MOST", 3)
    for ago in range(5):
        garden.count(ago, finished=1)
    seen = garden.look().history
    assert seen.is_cut
    assert [minute for minute, step in seen.steps.items() if step.finished] == [
        seen.minute - ago for ago in (2, 1, 0)
    ]


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_quantiles_are_right_within_their_power_of_two(share: float) -> None:
    chance = random.Random(7)
    durations = sorted(int(chance.lognormvariate(5, 1.5)) for _ in range(5_000))
    counters = [0] * histogram.SIZE
    for each in durations:
        counters[histogram.slot(each)] += 1
    exact = durations[int(share * len(durations))]
    found = quantile(counters, share, durations[-1])
    assert found is not None
    assert exact / 2 <= found <= exact * 2


def test_quantiles_at_the_edges() -> None:
    counters = [0] * histogram.SIZE
    assert quantile(counters, 0.95, 0) is None
    counters[-1] = 1
    assert quantile(counters, 0.5, 1_000_000) == pytest.approx(762_144, abs=1)
    counters = [0] * histogram.SIZE
    counters[7] = 10
    assert quantile(counters, 0.95, 100) == 100
