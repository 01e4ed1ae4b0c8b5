"""The weights of the keys of fair queues, on every database."""

from __future__ import annotations

from math import inf, nan
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connections, transaction

from steady_queue_core import shares
from steady_queue_core.models import Share

from .everywhere import on_every_database
from .recurrence import tasks

pytestmark = on_every_database

UUID_KEY = UUID("12345678-1234-5678-1234-567812345678")


@pytest.fixture(autouse=True)
def _fair(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, fair_queues={"mail": 1, "imports*": 10, "audit": None})


def test_a_key_has_the_weight_of_its_queue_until_it_gets_another(using: str) -> None:
    assert shares.weight_of("mail", "a") == 1
    assert shares.weight_of("imports-7", "a") == 10
    shares.set_weight("mail", "a", 5)
    shares.set_weight("imports-7", "a", 2.5)
    assert shares.weight_of("mail", "a") == 5
    assert shares.weight_of("mail", "b") == 1
    assert [shares.weight_of(f"imports-{number}", "a") for number in (7, 8)] == [2.5, 10]
    assert list(Share.objects.using(using).order_by("queue_name").values_list(
        "queue_name", "key", "weight"
    )) == [("imports-7", "a", 2.5), ("mail", "a", 5.0)]  # fmt: skip


def test_a_weight_that_is_set_again_replaces_the_first(using: str) -> None:
    for weight in (5, 1000, 1):
        shares.set_weight("mail", "a", weight)
        assert shares.weight_of("mail", "a") == weight
    assert Share.objects.using(using).count() == 1


def test_a_key_may_get_the_weight_of_its_queue_again(using: str) -> None:
    shares.set_weight("mail", "a", 5)
    shares.set_weight("mail", "b", 5)
    assert shares.reset_weight("mail", "a")
    assert not shares.reset_weight("mail", "a")
    assert shares.weights_of("mail") == {"b": 5}
    assert shares.weight_of("mail", "a") == 1


def test_weights_are_listed_by_key(using: str) -> None:
    for key in ("b", "a", None):
        shares.set_weight("mail", key, 2)
    shares.set_weight("imports", "c", 3)
    assert list(shares.weights_of("mail").items()) == [("", 2), ("a", 2), ("b", 2)]
    assert shares.weights_of("other") == {}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (7, "7"), (UUID_KEY, str(UUID_KEY)), (User(pk=17), "auth.user/17"), ("", ""), (None, ""),
        ("é", "é"),
    ],
)  # fmt: skip
def test_keys_are_those_of_jobs(using: str, key: Any, text: str) -> None:
    shares.set_weight("mail", key, 3)
    assert shares.weights_of("mail") == {text: 3}
    assert shares.weight_of("mail", text) == 3
    assert shares.reset_weight("mail", key)


def test_a_long_key_is_that_of_its_jobs(using: str) -> None:
    shares.set_weight("mail", "x" * 300, 3)
    assert shares.weight_of("mail", "x" * 300) == 3
    assert shares.weight_of("mail", "x" * 301) == 1
    [stored] = shares.weights_of("mail")
    assert len(stored) == 255


@pytest.mark.parametrize("other", ["A", "á", "a ", "", "b"])
def test_keys_compare_exactly(using: str, other: str) -> None:
    shares.set_weight("mail", "a", 3)
    shares.set_weight("mail", other, 4)
    assert shares.weight_of("mail", "a") == 3
    assert shares.weights_of("mail") == {"a": 3, other: 4}


def test_a_key_has_one_row(using: str) -> None:
    rows = Share.objects.using(using)
    rows.create(queue_name="mail", key="a", weight=1)
    with pytest.raises(IntegrityError), transaction.atomic(using=using):
        rows.create(queue_name="mail", key="a", weight=2)
    rows.create(queue_name="mail", key="A", weight=2)


def test_a_weight_is_part_of_the_callers_transaction(using: str) -> None:
    with transaction.atomic(using=using):
        shares.set_weight("mail", "a", 5)
        assert shares.weight_of("mail", "a") == 5
        transaction.set_rollback(True, using=using)
    assert shares.weight_of("mail", "a") == 1


@pytest.mark.parametrize("weight", [0, 0.5, 1001, -1, nan, inf, 10**400])
def test_numbers_that_are_no_weights_are_refused(using: str, weight: Any) -> None:
    with pytest.raises(ValueError, match="The weight must be a number from 1 to 1000, not "):
        shares.set_weight("mail", "a", weight)
    assert not Share.objects.using(using).exists()


@pytest.mark.parametrize("weight", ["5", None, True, [5]])
def test_what_is_no_number_is_refused(using: str, weight: Any) -> None:
    with pytest.raises(TypeError, match="The weight must be a number from 1 to 1000, not "):
        shares.set_weight("mail", "a", weight)


@pytest.mark.parametrize("key", [1.5, True, [], b"a"])
def test_keys_of_other_types_are_refused(using: str, key: Any) -> None:
    for do in (lambda: shares.set_weight("mail", key, 2), lambda: shares.weight_of("mail", key)):
        with pytest.raises(TypeError, match="The key must be a string, a number, a UUID, a model"):
            do()


@pytest.mark.parametrize("key", ["a\0b", "\ud800", User()])
def test_keys_that_no_job_can_have_are_refused(using: str, key: Any) -> None:
    with pytest.raises(ValueError, match="The key "):
        shares.set_weight("mail", key, 2)


@pytest.mark.parametrize("queue", ["audit", "other", "Mail"])
def test_the_keys_of_a_queue_that_is_not_fair_have_no_weights(using: str, queue: str) -> None:
    with pytest.raises(ValueError, match="is not fair") as caught:
        shares.set_weight(queue, "a", 2)
    assert str(caught.value) == (
        f"The queue {queue!r} of the database {using!r} is not fair: its keys have no weights. "
        "Check the spelling, or add it to OPTIONS['fair_queues'] of a backend in TASKS."
    )
    assert shares.weight_of(queue, "a") is None


def test_other_names_of_queues_are_refused(using: str) -> None:
    with pytest.raises(ValueError, match=r"The queue '' is not valid: it is empty\."):
        shares.set_weight("", "a", 2)
    with pytest.raises(TypeError, match=r"The queue must be a name, not int 5\."):
        shares.set_weight(5, "a", 2)  # type: ignore[arg-type]  # What is to be refused.


def test_a_row_that_somebody_has_written_with_no_weight_counts_as_none(using: str) -> None:
    rows = Share.objects.using(using)
    for key, weight in (("small", 0), ("large", 1e9), ("good", 7)):
        rows.create(queue_name="mail", key=key, weight=weight)
    assert shares.weights_of("mail") == {"good": 7}
    assert [shares.weight_of("mail", key) for key in ("small", "large", "good")] == [1, 1, 7]
    if using == "default":  # SQLite stores anything.
        for key, weight in (("text", "many"), ("bytes", b"\0"), ("infinite", inf)):
            with connections[using].cursor() as cursor:
                statement = "INSERT INTO steady_queue_shares (queue_name, key, weight)"
                cursor.execute(f"{statement} VALUES ('mail', %s, %s)", [key, weight])
            assert shares.weight_of("mail", key) == 1
        assert shares.weights_of("mail") == {"good": 7}


def test_a_database_can_be_named(using: str, settings: Any) -> None:
    settings.TASKS = {
        "default": {**tasks("default")["default"], "OPTIONS": {}},
        "other": tasks(using, fair_queues=["mail"])["default"],
    }
    shares.set_weight("mail", "a", 5, using=using)
    assert Share.objects.using(using).count() == 1
    assert shares.weight_of("mail", "a", using=using) == 5
    assert shares.weights_of("mail", using=using) == {"a": 5}
    assert shares.reset_weight("mail", "a", using=using)
