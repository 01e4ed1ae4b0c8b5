"""The option ``unique``, and the keys of calls: without a database."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from datetime import date, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from steady_queue_core import Unique, task
from steady_queue_core.arguments import canonical, encode_call
from steady_queue_core.compat import InvalidTask
from steady_queue_core.dialects import JobKey
from steady_queue_core.features.unique.calls import key_of_call
from steady_queue_core.tasks.metadata import JobMetadata

from ..app.models import Item

HERE = __name__
HOUR = timedelta(hours=1)


@task(unique=True)
def plain(first: Any = 1, *rest: Any, named: Any = None, **others: Any) -> None:
    """Do nothing."""


@task(takes_context=True, unique=Unique())
def with_context(context: Any, first: int) -> None:
    """Do nothing."""


@task
def usual(first: Any = None) -> None:
    """Do nothing."""


def key(of: Any, *args: Any, **kwargs: Any) -> str:
    found = key_of_call(of, args, kwargs, encode_call(args, kwargs))
    assert found is not None
    return found.key


def test_a_task_has_no_key_unless_it_says_so() -> None:
    assert key_of_call(usual, (), {}, "") is None
    assert usual.unique is None
    assert plain.unique == Unique()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (((), {"first": 1}), ((1,), {})),
        (((1,), {"b": 1, "a": 2}), ((1,), {"a": 2, "b": 1})),
        ((({"a": 1, "b": {"c": 1, "d": 2}},), {}), (({"b": {"d": 2, "c": 1}, "a": 1},), {})),
        ((({1: "a", "1": "b"},), {}), (({"1": "b", 1: "a"},), {})),
        ((({"ab", "c"},), {}), (({"c", "ab"},), {})),
        (((1, 2), {"named": 3}), ((1, 2), {"named": 3})),
        ((([1, (2,)],), {}), (([1, (2,)],), {})),
    ],
)
def test_calls_that_are_the_same(one: Any, other: Any) -> None:
    assert key(plain, *one[0], **one[1]) == key(plain, *other[0], **other[1])


def test_calls_that_differ() -> None:
    values = [
        1, 1.0, True, "1", None, (1,), [1], {"a": 1}, {1: "a"}, {"1": "a"}, date(2026, 1, 1),
        "2026-01-01", [[1], 2], [1, [2]], {"a": {"b": 1}}, {"a": 1, "b": 1},
    ]  # fmt: skip
    assert len({key(plain, each) for each in values}) == len(values)
    assert key(plain) != key(plain, 1)  # What a default is may change.
    assert key(plain, 1, 2) != key(plain, 1, named=2)
    assert key(with_context, 1) == key(with_context, first=1)
    assert key(plain, 1) != key(with_context, 1)


def test_a_key_is_the_same_in_all_processes() -> None:
    assert key(plain, {"b": [1, {"d": None}], "a": "ä"}).startswith(f"{HERE}.plain/")
    assert key(plain, {"b": 1, "a": "ä"}).endswith(
        key(plain, **{"first": {"a": "ä", "b": 1}}).rpartition("/")[2]
    )


class Colour(Enum):
    RED = 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a", "a"), (7, "7"), (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Item(pk=3), "testapp.item/3"), ("a b", "a b"),
    ],
)  # fmt: skip
def test_what_a_key_may_be(given: Any, expected: str) -> None:
    assert key(usual.using(unique=Unique(key=lambda first: given)), 1) == f"{HERE}.usual/{expected}"
    assert key(usual.using(unique_key=given), 1) == f"{HERE}.usual/{expected}"


def test_a_call_without_a_key_is_not_unique() -> None:
    of = usual.using(unique=Unique(key=lambda first: None))
    assert key_of_call(of, (1,), {}, "") is None


def test_a_long_key_ends_with_its_hash() -> None:
    one, other = (key(usual.using(unique_key="x" * 300 + each)) for each in "ab")
    assert len(one) == len(other) == 255
    assert one != other


def test_an_instance_without_a_primary_key_is_no_key() -> None:
    for of in (
        usual.using(unique_key=Item()),
        usual.using(unique=Unique(key=lambda first: Item())),
    ):
        with pytest.raises(InvalidTask, match=r"is an instance of testapp.Item that is not saved"):
            key(of, 1)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", "is empty"), (1.5, "of type float"), (b"a", "of type bytes"), ([], "of type list"),
        (Colour.RED, "of type Colour"), ("a\0", "NUL"), ("\ud800", "surrogate"),
    ],
)  # fmt: skip
def test_what_a_key_may_not_be(given: Any, told: str) -> None:
    of = usual.using(unique=Unique(key=lambda first: given))
    with pytest.raises(InvalidTask, match=told) as raised:
        key(of, 1)
    assert f"The unique key of {HERE}.usual" in str(raised.value)


def test_a_callable_that_fails() -> None:
    of = usual.using(unique=Unique(key=lambda first: first.missing))
    with pytest.raises(InvalidTask, match="could not be computed: AttributeError"):
        key(of, 1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"until": "finnished"}, "until 'finnished' is not valid; did you mean 'finished'?"),
        ({"until": 3}, "until 3 is not valid"),
        ({"on_conflict": "replaced"}, "did you mean 'replace'?"),
        ({"keep": 5}, "keep must be a timedelta, not int"),
        ({"keep": -HOUR}, "keep must be from 0 to 3650 days"),
        ({"keep": HOUR, "until": "started"}, "keep counts from the end"),
        ({"latest": 5, "on_conflict": "replace"}, "latest must be a timedelta, not int"),
        ({"latest": 0 * HOUR, "on_conflict": "replace"}, "latest must be more than 0"),
        ({"latest": 9**6 * HOUR, "on_conflict": "replace"}, "at most 3650 days"),
        ({"latest": HOUR}, "goes only with on_conflict='replace'"),
        ({"key": 5}, "key must be a string or a callable, not int"),
        ({"key": ""}, "key is empty"),
        ({"group": "a/b"}, "group 'a/b' is not valid"),
        ({"group": 5}, "group must be a string, not int"),
        ({"untill": "started"}, "unknown option 'untill'; did you mean 'until'?"),
    ],
)  # fmt: skip
def test_wrong_values(options: dict[str, Any], told: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        Unique(**options)
    assert told in str(raised.value)
    assert str(raised.value).startswith("Unique: ")


@pytest.mark.parametrize("wrong", [False, "a", {"key": "a"}, Unique, 1])
def test_what_is_no_option(wrong: Any) -> None:
    with pytest.raises(InvalidTask, match="unique must be True or"):
        usual.using(unique=wrong)
    with pytest.raises(InvalidTask, match="unique must be True or"):
        task(unique=wrong)(usual.func)


@pytest.mark.parametrize("wrong", [1.5, b"a", ["a"], len])
def test_what_is_no_key_of_a_call(wrong: Any) -> None:
    with pytest.raises(InvalidTask, match=f"{HERE}.usual: unique_key must be a string"):
        usual.using(unique_key=wrong)


def test_an_empty_key_of_a_call() -> None:
    with pytest.raises(InvalidTask, match="unique_key is empty"):
        usual.using(unique_key="")


def test_a_key_of_a_call_leaves_the_other_options() -> None:
    replacing = usual.using(unique=Unique(on_conflict="replace", group="g"), unique_key="a")
    assert replacing.unique == Unique(key="a", on_conflict="replace", group="g")
    assert key(replacing) == "g/a"


@pytest.mark.parametrize(
    "stored",
    [
        ("k",), ("k", "started"), ("k", "finished", HOUR), ("k", "finished", timedelta(0), "raise"),
    ],
)  # fmt: skip
def test_a_key_is_kept_with_the_metadata(stored: tuple[Any, ...]) -> None:
    found = JobKey.of(stored)
    assert found is not None
    assert found.stored == stored
    assert JobKey.read(JobMetadata(unique=stored).text()) == found


@pytest.mark.parametrize(
    "wrong",
    [
        None, "k", [], ("",), ("k" * 256,), (5,), ("k", "later"), ("k", "finished", 5),
        ("k", "finished", -HOUR), ("k", "finished", HOUR, "no"), ("k",) * 5, ("k", ["started"]),
    ],
)  # fmt: skip
def test_a_row_cannot_name_what_is_no_key(wrong: Any) -> None:
    text = JobMetadata(unique=wrong).text()
    assert JobKey.read(text) is None
    assert JobMetadata.read(text).unique is None


@pytest.mark.parametrize("text", [None, "", "{", b"\xff", '"unique"', '["unique"]', 5])
def test_damaged_metadata_have_no_key(text: Any) -> None:
    assert JobKey.read(text) is None


def test_the_canonical_form_of_hostile_text() -> None:
    assert canonical(encode_call([{"b": 1, "a": 2}], {})) == canonical(
        encode_call([{"a": 2, "b": 1}], {})
    )


def test_the_option_is_copied_like_any_value() -> None:
    unique = Unique(key="a", keep=HOUR)
    assert copy.deepcopy(unique) == pickle.loads(pickle.dumps(unique)) == unique
    assert replace(unique, key="b") == Unique(key="b", keep=HOUR)
