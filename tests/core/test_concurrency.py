"""Concurrency limits as tasks state them: keys, groups, conflicts, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.core.checks import run_checks
from django.db import transaction

import steady_queue_core
from steady_queue_core import call, enqueue_many, limits_concurrency, limits_rate, task
from steady_queue_core.compat import InvalidTask, TaskResultStatus
from steady_queue_core.models import (
    BlockedExecution,
    Job,
    Permit,
    ReadyExecution,
    ScheduledExecution,
    Semaphore,
)
from steady_queue_core.tasks.registry import find_task

from ..app.models import Item
from ..models.everywhere import on_every_database
from .samples import FRAMEWORK, OURS, Recorder, real_transactions

HOUR = timedelta(hours=1)


def work(name: object, text: str = "") -> None:
    """What the tasks of these tests do: nothing."""


def limited(function: Any = work, /, **limit: Any) -> Any:
    return limits_concurrency(**limit)(task(function))


def key_of(decorated: Any, *args: Any, **kwargs: Any) -> str | None:
    job = Job.objects.get(pk=decorated.enqueue(*args, **kwargs).id)
    return job.concurrency_key


def ids(model: Any, using: str) -> list[int]:
    return sorted(model.objects.using(using).values_list("pk", flat=True))


@on_every_database
def test_a_call_over_the_limit_is_blocked_and_waits_with_its_queue_and_priority(
    using: str, settings: Any
) -> None:
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"database": using}}}
    decorated = limited(key=lambda name, text="": name, to=2, duration=HOUR)
    urgent = decorated.using(priority=9, queue_name="mail")
    first, second, third = (int(urgent.enqueue("a", text=text).id) for text in "123")
    [other] = [int(decorated.enqueue("b").id)]

    assert ids(ReadyExecution, using) == ids(Permit, using) == [first, second, other]
    blocked = BlockedExecution.objects.using(using).get()
    path = f"{work.__module__}.work"
    assert (blocked.pk, blocked.queue_name, blocked.rank) == (third, "mail", -9)
    assert blocked.concurrency_key == f"{path}/a"
    job = Job.objects.using(using).get(pk=third)
    assert (job.concurrency_limit, job.concurrency_duration) == (2, HOUR)
    values = dict(Semaphore.objects.using(using).values_list("key", "value"))
    assert values == {f"{path}/a": 0, f"{path}/b": 1}
    assert decorated.get_result(str(third)).status == TaskResultStatus.READY


@on_every_database
def test_a_group_is_a_part_of_the_key_and_joins_tasks(using: str, settings: Any) -> None:
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"database": using}}}
    one = limited(key="same", group="ours")
    two = limited(key="same", group="ours", to=1)
    alone = limited(key="same")
    first, second, third = (int(each.enqueue("a").id) for each in (one, two, alone))
    assert ids(ReadyExecution, using) == [first, third]
    assert ids(BlockedExecution, using) == [second]


@on_every_database
def test_many_calls_under_limits_tell_what_became_of_each(using: str, settings: Any) -> None:
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"database": using}}}
    waits = limited(key=lambda name, text="": name)
    leaves = limited(key=lambda name, text="": name, group="leaves", on_conflict="discard")
    later = waits.using(run_after=HOUR)
    calls = [call(waits, "a"), call(waits, "a"), call(leaves, "a"), call(later, "a")]
    results = enqueue_many([*calls, call(leaves, "a"), call(waits, "b"), call(leaves, "b")])

    told = [int(result.id) if result.id else None for result in results]
    assert [result.discarded for result in results] == [False] * 4 + [True] + [False] * 2
    assert told[4] is None
    assert results[4].status == TaskResultStatus.FAILED
    assert ids(ReadyExecution, using) == [told[0], told[2], told[5], told[6]]
    assert ids(BlockedExecution, using) == [told[1]]
    assert ids(ScheduledExecution, using) == [told[3]]
    assert ids(Job, using) == [each for each in told if each is not None]


@on_every_database
def test_a_call_that_is_discarded_leaves_nothing_and_the_transaction_usable(
    using: str, settings: Any
) -> None:
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"database": using}}}
    decorated = limited(key="one", on_conflict="discard")
    first = decorated.enqueue("a")
    with transaction.atomic(using=using):
        second = decorated.enqueue("b")
        third = limited(key="two").enqueue("c")
    assert (first.discarded, second.discarded, second.id) == (False, True, "")
    assert ids(Job, using) == [int(first.id), int(third.id)]
    later = decorated.using(run_after=HOUR).enqueue("d")
    assert ids(ScheduledExecution, using) == [int(later.id)]


@real_transactions
def test_a_call_that_waits_for_the_commit_is_discarded_then(recorders: dict[str, Recorder]) -> None:
    decorated = limited(key="one", on_conflict="discard")
    with transaction.atomic():
        results = [decorated.using(enqueue_on_commit=True).enqueue("a") for _ in range(2)]
        assert [result.discarded for result in results] == [False, False]
    assert [result.discarded for result in results] == [False, True]
    assert [result.status for result in results][1] == TaskResultStatus.FAILED
    assert len(recorders["enqueued"].calls) == 1


@pytest.mark.django_db
def test_what_a_key_may_be() -> None:
    item = Item.objects.create(name="thing")
    uuid = UUID(int=7)
    path = f"{work.__module__}.work"
    given = limited(key=lambda name, text="": name, group="g")
    assert key_of(given, "a/b") == "g/a/b"
    assert key_of(given, 17) == "g/17"
    assert key_of(given, "") == "g/"
    assert key_of(given, uuid) == f"g/{uuid}"
    assert key_of(given, item) == f"g/testapp.item/{item.pk}"
    assert key_of(given, None) is None
    assert key_of(limited(key="k"), "a") == f"{path}/k"
    assert Permit.objects.count() == 6


@pytest.mark.django_db
def test_long_keys_are_told_apart() -> None:
    given = limited(key=lambda name, text="": name, group="g")
    long, longer = key_of(given, "x" * 254), key_of(given, "x" * 255)
    assert long
    assert longer
    assert len(long) == len(longer) == 255
    assert key_of(given, "x" * 253) == "g/" + "x" * 253
    assert len({long, longer, key_of(given, "x" * 256)}) == 3
    assert key_of(given, "x" * 255) == longer


@pytest.mark.parametrize("key", [["a"], 1.5, b"a", "a\0b", "\ud800"])
@pytest.mark.django_db
def test_a_call_whose_key_cannot_be_used_is_refused(key: Any) -> None:
    decorated = limited(key=lambda name, text="": key)
    with pytest.raises(InvalidTask, match=r"^The concurrency key of .*work "):
        decorated.enqueue("a")
    with pytest.raises(InvalidTask, match=r"^calls\[1\]: The concurrency key"):
        enqueue_many([call(limited(key="k"), "a"), call(decorated, "a")])
    assert Job.objects.count() == 0


@pytest.mark.django_db
def test_a_key_that_raises_names_the_task_and_the_reason() -> None:
    decorated = limited(key=lambda name: name)
    with pytest.raises(InvalidTask, match=r"could not be computed: TypeError.*'text'"):
        decorated.enqueue("a", text="b")
    assert Job.objects.count() == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"key": 5}, "key must be a string or a callable, not int"),
        ({"key": "a", "to": 0}, "to must be from 1 to 1000000, not 0"),
        ({"key": "a", "to": 2.0}, "to must be a whole number, not 2.0"),
        ({"key": "a", "to": True}, "to must be a whole number, not True"),
        ({"key": "a", "duration": 60}, "duration must be a timedelta, not int"),
        ({"key": "a", "duration": timedelta(0)}, "duration must be more than 0"),
        ({"key": "a", "duration": timedelta(days=4000)}, "at most 3650 days"),
        ({"key": "a", "group": "a/b"}, "group 'a/b' is not valid"),
        ({"key": "a", "group": ""}, "group '' is not valid"),
        ({"key": "a", "group": 5}, "group must be a string, not int"),
        ({"key": "a", "on_conflict": "drop"}, "must be 'block' or 'discard', not 'drop'"),
    ],
)
def test_a_limit_that_cannot_be_used_is_refused_at_once(given: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        limits_concurrency(**given)


@pytest.mark.parametrize("decorated", [work, SimpleNamespace(), int])
def test_only_tasks_can_be_limited(decorated: Any) -> None:
    with pytest.raises(TypeError, match=r"put it above @task\(\), not below"):
        limits_concurrency(key="a")(decorated)


def test_a_second_limit_of_a_kind_is_refused_by_name() -> None:
    rate = limits_rate(to=1, per=HOUR)
    both = rate(limited(key="a"))
    assert (both.concurrency.key, both.rate.to) == ("a", 1)
    for decorator, name in ((limits_concurrency(key="b"), "concurrency"), (rate, "rate")):
        with pytest.raises(
            ValueError, match=f"@limits_{name} decorates .* a second time"
        ) as raised:
            decorator(both)
        assert "tests.core.test_concurrency.work" in str(raised.value)


@pytest.mark.django_db
def test_the_default_duration_is_that_of_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    decorated = limited(key="a")
    monkeypatch.setattr(steady_queue_core, "default_concurrency_control_period", HOUR)
    job = Job.objects.get(pk=decorated.enqueue("a").id)
    assert job.concurrency_duration == HOUR


def test_a_task_keeps_its_limit_through_using_and_is_found_with_it() -> None:
    decorated = limited(key="a", to=3)
    assert decorated.using(priority=5).concurrency.to == 3
    assert find_task(decorated.module_path) is decorated


def test_another_backend_knows_no_limits(settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": f"{FRAMEWORK}.backends.immediate.ImmediateBackend"}}
    decorated = limits_concurrency(key="a", on_conflict="discard")(task(work))
    assert [decorated.enqueue("a").discarded for _ in range(2)] == [False, False]


def test_a_group_whose_tasks_disagree_is_warned_of() -> None:
    def other() -> None:
        """Another task."""

    other.__qualname__ = "other"
    limited(key="a", group="g", to=2)
    limited(other, key="a", group="g", to=3)
    [warning] = [
        each for each in run_checks(tags=["steady_queue"], databases=[]) if "group" in each.msg
    ]
    assert warning.id == "steady_queue.W009"
    for part in ("'g'", "to=2: ", "to=3: "):
        assert part in warning.msg


def test_a_duration_that_heartbeats_cannot_keep_is_warned_of(settings: Any) -> None:
    def other() -> None:
        """Another task."""

    other.__qualname__ = "other"
    settings.STEADY_QUEUE = {"process_heartbeat_interval": 50}
    limited(key="a", duration=timedelta(seconds=2))
    limited(other, key="a", duration=timedelta(seconds=100))
    messages = run_checks(tags=["steady_queue"], databases=[])
    [warning] = [each for each in messages if each.id == "steady_queue.W022"]
    path = f"{work.__module__}.work"
    assert f"{path} (0:00:02)" in warning.msg
    assert "other" not in warning.msg
    assert "0:01:40" in warning.msg  # How long they are kept in fact.
    for part in ("duration", "0:01:40", "process_heartbeat_interval", "0:00:01"):
        assert part in str(warning.hint)


def test_a_usual_duration_that_heartbeats_cannot_keep_is_warned_of(
    settings: Any, monkeypatch: Any
) -> None:
    limited(key="a")
    monkeypatch.setattr(
        steady_queue_core, "default_concurrency_control_period", timedelta(seconds=90)
    )
    messages = run_checks(tags=["steady_queue"], databases=[])
    [warning] = [each for each in messages if each.id == "steady_queue.W022"]
    assert f"{work.__module__}.work (0:01:30)" in warning.msg
    assert "default_concurrency_control_period" in str(warning.hint)
