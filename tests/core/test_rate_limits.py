"""Rate limits as tasks state them: keys, groups, what is stored, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.core.checks import run_checks

from steady_queue_core import (
    Batch,
    Unique,
    arguments,
    call,
    enqueue_many,
    limits_concurrency,
    limits_rate,
    task,
)
from steady_queue_core.compat import InvalidTask
from steady_queue_core.dialects import JobRate
from steady_queue_core.models import Job
from steady_queue_core.tasks.metadata import JobMetadata
from steady_queue_core.tasks.registry import find_task

from ..app.models import Item
from .samples import FRAMEWORK

SECOND, MINUTE, HOUR = (timedelta(seconds=n) for n in (1, 60, 3600))
PATH = f"{__name__}.work"


def work(name: object, text: str = "") -> None:
    """What the tasks of these tests do: nothing."""


def limited(function: Any = work, /, *, to: int = 5, per: Any = MINUTE, **limit: Any) -> Any:
    return limits_rate(to=to, per=per, **limit)(task(function))


def rate_of(result: Any) -> JobRate | None:
    return JobMetadata.read(Job.objects.get(pk=result.id).metadata).rate_limit


def key_of(decorated: Any, *args: Any, **kwargs: Any) -> str | None:
    found = rate_of(decorated.enqueue(*args, **kwargs))
    return None if found is None else found.key


@pytest.mark.django_db
def test_a_job_keeps_its_limit_with_its_metadata() -> None:
    plain = limited().using(metadata={"a": 1}).enqueue("a")
    assert rate_of(plain) == JobRate(f"{PATH}/all", 5, MINUTE, 0)
    assert plain.metadata == {"a": 1}
    assert rate_of(limited(burst=3).enqueue("a")) == JobRate(f"{PATH}/all", 5, MINUTE, 3)


@pytest.mark.django_db
def test_all_ways_to_enqueue_keep_it() -> None:
    decorated = limited()
    with Batch():
        member = decorated.enqueue("a")
    results = [
        member, *enqueue_many([call(decorated, "a"), call(decorated, "b")]),
        decorated.using(run_after=HOUR).enqueue("a"), decorated.using(unique=True).enqueue("a"),
        decorated.get_backend().enqueue_now(decorated, ["a"], {}),
    ]  # fmt: skip
    assert {rate_of(result) for result in results} == {JobRate(f"{PATH}/all", 5, MINUTE)}


@pytest.mark.django_db
def test_a_task_may_have_all_kinds_of_limits_and_keys() -> None:
    decorated = limits_rate(to=1, per=SECOND, key="r")(
        limits_concurrency(key="c", to=3)(task(unique=Unique(key="u"))(work))
    )
    job = Job.objects.get(pk=decorated.enqueue("a").id)
    metadata = JobMetadata.read(job.metadata)
    assert (job.concurrency_key, job.concurrency_limit) == (f"{PATH}/c", 3)
    assert metadata.rate_limit == JobRate(f"{PATH}/r", 1, SECOND)
    assert metadata.unique_key is not None
    assert find_task(PATH) is decorated


@pytest.mark.django_db
def test_what_a_key_may_be() -> None:
    item = Item.objects.create(name="thing")
    given = limited(key=lambda name, text="": name, group="g")
    assert key_of(given, "a/b") == "g/a/b"
    assert key_of(given, 17) == "g/17"
    assert key_of(given, UUID(int=7)) == f"g/{UUID(int=7)}"
    assert key_of(given, item) == f"g/testapp.item/{item.pk}"
    assert key_of(given, None) is None
    assert key_of(limited(key="k"), "a") == f"{PATH}/k"
    long, longer = key_of(given, "x" * 253), key_of(given, "x" * 254)
    assert long
    assert longer
    assert len(long) == len(longer) == 255
    assert long != longer


@pytest.mark.parametrize("key", [["a"], 1.5, b"a", "a\0b", "\ud800"])
@pytest.mark.django_db
def test_a_call_whose_key_cannot_be_used_is_refused(key: Any) -> None:
    decorated = limited(key=lambda name, text="": key)
    with pytest.raises(InvalidTask, match=r"^The rate key of .*work "):
        decorated.enqueue("a")
    assert Job.objects.count() == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"key": 5}, "@limits_rate: key must be a string or a callable, not int"),
        ({"to": 0}, "@limits_rate: to must be from 1 to 1000000, not 0"),
        ({"to": 2.0}, "@limits_rate: to must be a whole number, not 2.0"),
        ({"to": True}, "@limits_rate: to must be a whole number, not True"),
        ({"burst": -1}, "@limits_rate: burst must be from 0 to 1000000, not -1"),
        ({"burst": None}, "@limits_rate: burst must be a whole number, not None"),
        ({"per": 60}, "@limits_rate: per must be a timedelta, not int"),
        (
            {"per": timedelta(milliseconds=999)},
            "@limits_rate: per must be from 1 second to 3650 days, not 0:00:00.999000; for a "
            "shorter period, give a whole second with as many more starts",
        ),
        ({"per": timedelta(days=4000)}, "@limits_rate: per must be from 1 second to 3650 days"),
        ({"group": "a/b"}, "@limits_rate: group 'a/b' is not valid"),
    ],
)
def test_a_limit_that_cannot_be_used_is_refused_at_once(given: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        limits_rate(**{"to": 1, "per": SECOND, **given})
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("decorated", [work, SimpleNamespace(), int])
def test_only_tasks_can_be_limited(decorated: Any) -> None:
    with pytest.raises(TypeError, match=r"put it above @task\(\), not below"):
        limits_rate(to=1, per=SECOND)(decorated)


def test_a_task_keeps_its_limit_through_using_and_is_found_with_it() -> None:
    decorated = limited(to=3)
    assert decorated.using(priority=5).rate.to == 3
    assert find_task(decorated.module_path) is decorated


def test_another_backend_knows_no_limits(settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": f"{FRAMEWORK}.backends.immediate.ImmediateBackend"}}
    decorated = limits_rate(to=1, per=SECOND)(task(work))
    assert [decorated.enqueue("a").is_finished for _ in range(2)] == [True, True]


def test_a_group_whose_tasks_disagree_is_warned_of() -> None:
    def other() -> None:
        """Another task."""

    other.__qualname__ = "other"
    limited(group="g", to=2)
    limited(other, group="g", to=2, burst=1)
    [warning] = [
        each for each in run_checks(tags=["steady_queue"], databases=[]) if "rate group" in each.msg
    ]
    assert warning.id == "steady_queue.W017"
    assert warning.msg == (
        "The tasks of the rate group 'g' have different limits: to=2, per=0:01:00, burst=0: "
        f"{PATH}; to=2, per=0:01:00, burst=1: {__name__}.other"
    )


@pytest.mark.parametrize(
    "values",
    [
        7, [], (), ("k",), ("k", 5), ("", 5, MINUTE), ("k" * 256, 5, MINUTE),
        (None, 5, MINUTE), ("k", 0, MINUTE), ("k", True, MINUTE), ("k", 10**400, MINUTE),
        ("k", 5.0, MINUTE), ("k", 5, 60), ("k", 5, timedelta(0)), ("k", 5, timedelta.max),
        ("k", 5, MINUTE, -1), ("k", 5, MINUTE, 10**400), ("k", 5, MINUTE, None),
        ("k", 5, MINUTE, 1, 2),
    ],
)  # fmt: skip
def test_a_stored_limit_that_is_none_is_no_limit(values: Any) -> None:
    assert JobRate.of(values) is None
    text = arguments.encode({"rate": values, "slot": values})
    assert JobRate.read(text) is None
    assert JobMetadata.read(text).rate_limit is None
    assert JobMetadata.read(text).slot is None


@pytest.mark.parametrize("text", [None, "", "{", '{"rate"', '["rate"]', '"rate"', b'"rate"', 7])
def test_metadata_that_are_damaged_hold_no_limit(text: Any) -> None:
    assert JobRate.read(text) is None


def test_a_slot_counts_for_the_attempt_that_it_was_given_to() -> None:
    metadata = JobMetadata(rate=("k", 5, MINUTE), slot=(17, 2))
    assert JobMetadata.read(metadata.text()) == metadata
    assert [metadata.slot_of(attempts) for attempts in (1, 2, 3)] == [None, 17, None]
