"""Task arguments to text and back: what comes back exactly, and what is refused how."""

from __future__ import annotations

import dataclasses
import enum
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import time as clock
import tracemalloc
from collections import Counter, OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import connections, models
from django.http import HttpRequest, QueryDict
from django.test.utils import isolate_apps
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy
from hypothesis import given, settings
from hypothesis import strategies as st

from steady_queue_core.arguments import (
    DeserializationError,
    ModelReference,
    PayloadLimits,
    TaskArgumentError,
    decode,
    decode_call,
    encode,
    encode_call,
    tags,
)
from steady_queue_core.arguments.encoder import Encoder
from steady_queue_core.arguments.limits import DEFAULT_LIMITS
from steady_queue_core.arguments.plain import plain_call
from tests.app.models import Item, NamedItem, Parcel

from ..aliases import added_alias
from ..findings import for_each

BERLIN = ZoneInfo("Europe/Berlin")
STORABLE = (
    "None, bool, int, float, str, bytes, list, tuple, dict, set, frozenset, datetime, date, "
    "time, timedelta, Decimal, UUID, a saved model instance"
)


def exact(value: Any) -> Any:
    """Return a form of ``value`` that is equal only for equal values of equal types."""
    kind = type(value)
    if kind in (list, tuple):
        return kind, tuple(exact(item) for item in value)
    if kind in (set, frozenset):
        return kind, frozenset(exact(item) for item in value)
    if kind is dict:
        return kind, tuple((exact(key), exact(item)) for key, item in value.items())
    if kind in (datetime, time):
        zone = value.tzinfo
        return (
            kind,
            value.replace(tzinfo=None).isoformat(),
            value.fold,
            zone.key if isinstance(zone, ZoneInfo) else value.utcoffset(),
        )
    if kind in (float, Decimal):
        return kind, repr(value)
    return kind, value


def refusal(value: Any, **options: Any) -> str:
    with pytest.raises(TaskArgumentError) as caught:
        encode(value, **options)
    return str(caught.value)


def call_refusal(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(TaskArgumentError) as caught:
        encode_call(args, kwargs)
    return str(caught.value)


def unreadable(text: Any, **options: Any) -> str:
    with pytest.raises(DeserializationError) as caught:
        decode(text, **options)
    assert len(str(caught.value)) < 500
    return str(caught.value)


# Round trip

zones = st.sampled_from(
    [
        None,
        UTC,
        ZoneInfo("UTC"),
        BERLIN,
        ZoneInfo("America/Argentina/Ushuaia"),
        timezone(timedelta(hours=-3, minutes=-30)),
        timezone(timedelta(hours=1, seconds=7, microseconds=3)),
    ]
)
folds = st.sampled_from([0, 1])
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    st.sampled_from(
        ["__sq_", "__sq_date__", "__sq_dict__", "__sq_tuple__", "é", "\U0001f600", '"\\']
    ),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**40), 10**40),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    st.binary(max_size=20),
    st.builds(lambda value, fold: value.replace(fold=fold), st.datetimes(timezones=zones), folds),
    st.dates(),
    st.builds(lambda value, fold: value.replace(fold=fold), st.times(timezones=zones), folds),
    st.timedeltas(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.uuids(),
    st.builds(ModelReference, texts, texts, st.integers() | texts | st.uuids()),
)
hashables = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.sets(hashables, max_size=4),
        st.frozensets(hashables, max_size=4),
        st.dictionaries(texts, inner, max_size=4),
        st.dictionaries(hashables, inner, max_size=4),
    ),
    max_leaves=20,
)


@settings(deadline=None, max_examples=300)
@given(values)
def test_what_is_stored_comes_back_with_its_value_and_its_type(value: Any) -> None:
    text = encode(value)
    assert text.isascii()
    assert "\n" not in text
    assert exact(decode(text, resolve_models=False)) == exact(value)


@settings(deadline=None)
@given(st.lists(values, max_size=3), st.dictionaries(texts, values, max_size=3))
def test_the_arguments_of_a_call_come_back(args: list[Any], kwargs: dict[str, Any]) -> None:
    again = decode_call(encode_call(tuple(args), kwargs), resolve_models=False)
    assert exact(list(again)) == exact([args, kwargs])


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["__sq_", "\x7f", '"\\/', "a\0b"]),
)


@settings(deadline=None, max_examples=500)
@given(st.lists(plain, max_size=3), st.dictionaries(st.text(max_size=5) | texts, plain, max_size=3))
def test_plain_arguments_have_the_text_that_a_walk_gives_them(
    args: list[Any], kwargs: dict[str, Any]
) -> None:
    text = plain_call(args, kwargs)
    if text is not None:
        walked = Encoder(DEFAULT_LIMITS, "the call").call(args, kwargs)
        assert text == json.dumps(walked, separators=(",", ":"))


def test_plain_arguments_are_written_without_a_walk() -> None:
    written = plain_call([None, True, -7, 1.5, 'a "b"'], {"name": "c"})
    assert written == '{"args":[null,true,-7,1.5,"a \\"b\\""],"kwargs":{"name":"c"}}'


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ([float("nan")], {}),
        ([10**30], {}),
        (["é"], {}),
        (["x" * 20_000], {}),
        ([0] * 1_000, {}),
        ([mark_safe("x")], {}),
        ([[]], {}),
        ([], {"__sq_date__": 1}),
    ],
)
def test_other_arguments_are_left_to_the_walk(args: list[Any], kwargs: dict[str, Any]) -> None:
    assert plain_call(args, kwargs) is None


@settings(deadline=None)
@given(
    st.recursive(
        scalars | st.floats() | st.text(st.characters(), max_size=3) | st.builds(object),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        ),
        max_leaves=10,
    )
)
def test_any_value_comes_back_or_is_refused_by_path(value: Any) -> None:
    try:
        text = encode(value)
    except TaskArgumentError:
        assert re.match(r"value.* cannot be stored: ", refusal(value))
    else:
        assert exact(decode(text, resolve_models=False)) == exact(value)


@settings(deadline=None)
@given(values)
def test_the_size_limit_is_the_length_of_the_text(value: Any) -> None:
    text = encode(value)
    assert encode(value, limits=PayloadLimits(max_bytes=len(text))) == text
    if len(text) > 1:
        assert "bytes, the limit is" in refusal(
            value, limits=PayloadLimits(max_bytes=len(text) - 1)
        )


@pytest.mark.parametrize(
    "value",
    [
        -0.0,
        1e308,
        5e-324,
        2**64,
        -(2**63) - 1,
        10**4300 - 1,
        -(10**4300) + 1,
        datetime.max.replace(tzinfo=UTC),
        datetime(2025, 10, 26, 2, 30, tzinfo=BERLIN, fold=1),
        datetime(2025, 10, 26, 2, 30, tzinfo=UTC, fold=1),
        datetime(1, 1, 1),
        time(2, 30, fold=1),
        time(2, 30, tzinfo=BERLIN),
        timedelta.min,
        timedelta.max,
        timedelta(microseconds=-1),
        Decimal("-0.00"),
        Decimal("1E+999999"),
        Decimal("1." + "3" * 100),
        {1: "a", "1": "b", None: "c", (1, frozenset({2})): "d", date(2025, 1, 1): "e"},
        {"__sq_set__": [1]},
        {"__sq_dict__": ["__sq_set__", [1]]},
        {"__sq_model__": ["auth", "user", 1]},
        {"__sq_unknown__": 1, "x": 2},
        {"a": {"__sq_": {"__sq_tuple__": ()}}},
        {"b": 1, "a": 2},
        [[], {}, (), set(), frozenset(), "", b""],
    ],
    ids=lambda value: repr(value)[:40],
)
def test_edges_come_back(value: Any) -> None:
    assert exact(decode(encode(value))) == exact(value)


def test_text_is_compact_ascii_and_readable() -> None:
    assert encode_call((1, "é", (None,)), {"when": date(2025, 3, 30)}) == (
        '{"args":[1,"\\u00e9",{"__sq_tuple__":[null]}],'
        '"kwargs":{"when":{"__sq_date__":"2025-03-30"}}}'
    )


def test_equal_sets_have_equal_text() -> None:
    assert encode({"b", "a", "c"}) == '{"__sq_set__":["a","b","c"]}'
    assert encode({3, "a", None, (1,)}) == encode({(1,), None, "a", 3})


def test_a_zone_keeps_its_key_and_any_other_its_offset() -> None:
    class Summer(tzinfo):
        def utcoffset(self, moment: datetime | None) -> timedelta:
            return timedelta(hours=2)

    assert decode(encode(datetime(2025, 7, 1, tzinfo=BERLIN))).tzinfo is BERLIN
    again = decode(encode(datetime(2025, 7, 1, tzinfo=Summer())))
    assert again.tzinfo == timezone(timedelta(hours=2))


Point = namedtuple("Point", "x y")


class Colour(models.TextChoices):
    RED = "red"


class Level(models.IntegerChoices):
    HIGH = 3


class Loud(list[int]):
    def __iter__(self) -> Any:
        raise AssertionError("the value's own method was called")

    __len__ = __repr__ = __iter__


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (mark_safe("<b>"), "<b>"),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Point(1, 2), (1, 2)),
        (OrderedDict(a=1), {"a": 1}),
        (defaultdict(list, a=[1]), {"a": [1]}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (QueryDict("a=1&a=2"), {"a": ["1", "2"]}),
        ({mark_safe("k"): 1}, {"k": 1}),
        ({mark_safe("__sq_k"): 1}, {"__sq_k": 1}),
        ({Level.HIGH: Colour.RED}, {3: "red"}),
        (Loud([1, 2]), [1, 2]),
        (type("Ratio", (float,), {})(0.5), 0.5),
        (type("Moment", (datetime,), {})(2025, 1, 1), datetime(2025, 1, 1)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_instance_of_a_subclass_is_stored_as_its_base(value: Any, plain: Any) -> None:
    assert exact(decode(encode(value))) == exact(plain)


def test_an_ordered_dict_keeps_its_own_order() -> None:
    value = OrderedDict(a=1, b=2)
    value.move_to_end("a")
    assert list(decode(encode(value))) == ["b", "a"]


# Refusals


def test_a_refusal_says_what_where_and_how_to_mend_it() -> None:
    assert call_refusal({"x": lambda: None}) == (
        "args[0]['x'] cannot be stored: a function ('<lambda>') is not one of the types a task "
        f"argument may have ({STORABLE}). Pass the data it works on and choose the function inside "
        "the task."
    )


def test_a_refusal_is_a_type_error_and_a_value_error() -> None:
    assert issubclass(TaskArgumentError, TypeError)
    assert issubclass(TaskArgumentError, ValueError)


@pytest.mark.parametrize(
    ("args", "kwargs", "path"),
    [
        ((1, object()), {}, "args[1]"),
        (({"x": [0, (object(),)]},), {}, "args[0]['x'][1][0]"),
        ((), {"name": [1, 2, object()]}, "kwargs['name'][2]"),
        (({1: {None: object()}},), {}, "args[0][1][<NoneType>]"),
        (({object()},), {}, "args[0]{element}"),
        (({enum.Enum("Shade", "DARK").DARK: 1},), {}, "args[0][<Shade>]"),
        ((), {"a\0b": 1}, r"kwargs['a\x00b']"),
    ],
)
def test_a_refusal_names_the_path(args: tuple[Any, ...], kwargs: dict[str, Any], path: str) -> None:
    assert call_refusal(*args, **kwargs).startswith(f"{path} cannot be stored: ")


def test_a_refusal_calls_a_single_value_by_the_name_it_is_given() -> None:
    assert refusal([object()], root="the result").startswith("the result[0] cannot be stored: ")


@dataclasses.dataclass
class Invoice:
    number: int


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (len, "Pass the data it works on"),
        (partial(print, 1), "Pass the data it works on"),
        (Invoice, r"a class \('Invoice'\) is not one"),
        (Invoice(1), "Pass dataclasses.asdict"),
        (enum.Enum("Shade", "DARK").DARK, r"Pass its \.value"),
        (gettext_lazy("hello"), r"Pass str\(\.\.\.\) of it"),
        (io.StringIO(), "Pass its path, or its content"),
        (HttpRequest(), "Pass the few plain values"),
        (User.objects.all(), "Pass a list of primary keys"),
        (User.objects, "Run the query inside the task"),
        (User, "choose the class inside the task"),
        (AnonymousUser(), "stands for nobody.* pass request.user.pk, which is None for it"),
        (SimpleLazyObject(AnonymousUser), "Pass what is behind it. For request.user"),
        (SimpleLazyObject(list), "Pass what is behind it"),
        ((i for i in range(3)), r"Pass list\(\.\.\.\) of it"),
        (range(3), r"Pass list\(\.\.\.\) of it"),
        ({}.keys(), r"Pass list\(\.\.\.\) of it"),
        (bytearray(b"x"), r"Pass bytes\(\.\.\.\) of it"),
        (pathlib.Path("x"), r"Pass str\(\.\.\.\) of it"),
        (1j, "real and imaginary"),
        (json, "Import it inside the task"),
        (object(), "Pass the few plain values"),
        (ValueError("x"), "Pass the few plain values"),
        (float("nan"), "NaN and infinity"),
        (float("-inf"), "NaN and infinity"),
        (Decimal("NaN"), "must be finite"),
        (Decimal("sNaN"), "must be finite"),
        (Decimal("-Infinity"), "must be finite"),
        ("a\0b", "NUL"),
        ("a\ud800", r"lone surrogate \(at index 1\)"),
        ("\ud83d\ude00", "lone surrogate"),
        (10**4300, "too many digits"),
        (-(10**4300), "too many digits"),
        (1 << 10**7, "an integer of 10,000,001 bits has too many digits"),
        (User(), "the user instance is not saved. Save it first"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else ascii(value)[:20],
)
def test_what_cannot_come_back_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(TaskArgumentError, match=reason):
        encode([value])


def test_a_file_is_refused(tmp_path: pathlib.Path) -> None:
    with (tmp_path / "x").open("w") as file:
        assert "Pass its path, or its content" in refusal(file)


def test_names_of_arguments_must_be_text() -> None:
    with pytest.raises(TaskArgumentError, match="a name of type int is not a str"):
        encode_call((), {1: 2})  # type: ignore[dict-item]  # Refused.


@pytest.mark.parametrize("zone_raises", [True, False])
def test_a_zone_without_an_offset_is_refused(zone_raises: bool) -> None:
    class Nowhere(tzinfo):
        def utcoffset(self, moment: datetime | None) -> timedelta | None:
            if zone_raises:
                raise ZeroDivisionError
            return None

    assert "the time zone of the datetime gives no offset" in refusal(
        datetime(2025, 1, 1, tzinfo=Nowhere())
    )
    assert "the time zone of the time gives no offset" in refusal(time(1, tzinfo=Nowhere()))


def test_a_cycle_is_refused_where_it_closes() -> None:
    ring: dict[str, Any] = {"inner": [1]}
    ring["inner"].append(ring)
    assert call_refusal(ring) == (
        "args[0]['inner'][1] cannot be stored: it is a cycle, a container inside itself. Pass the "
        "parts of it that the task needs."
    )
    wide: list[Any] = Loud()
    list.extend(wide, [wide] * 10)
    assert refusal(wide).startswith("value[0] cannot be stored: it is a cycle")


def test_the_same_container_twice_is_not_a_cycle() -> None:
    shared = [1]
    assert decode(encode([shared, shared, (), ()])) == [[1], [1], (), ()]


class Hostile:
    def explode(self, *args: Any) -> Any:
        raise RuntimeError("a method of the value was called")

    __repr__ = __str__ = __eq__ = __bool__ = __getattr__ = __iter__ = __len__ = explode  # type: ignore[assignment]

    def __hash__(self) -> int:
        return 1

    @property
    def __class__(self) -> Any:
        raise ValueError("not telling")

    @__class__.setter
    def __class__(self, value: Any) -> None: ...


def test_no_method_of_a_refused_value_is_called() -> None:
    assert "a value of type Hostile is not one" in refusal([Hostile()])
    assert refusal({Hostile(): object()}).startswith("value[<Hostile>] cannot")
    assert len(refusal([type("x" * 10**6, (), {})()])) < 1000
    assert len(refusal({"k" * 10**5: object()})) < 1000


# Limits


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_depth_is_limited() -> None:
    assert decode(encode(nested(64))) == nested(64)
    assert decode_call(encode_call([nested(64)], {}), resolve_models=True) == ([nested(64)], {})
    assert refusal(nested(65)) == (
        "value[0][0][0][0][0][0][0][0]...[0][0][0][0] cannot be stored: it is nested more than 64 "
        "levels deep. Pass a flatter structure, or raise the limit."
    )
    assert "nested more than 64 levels deep" in call_refusal(nested(65))
    assert "nested more than 2 levels deep" in refusal(
        {"a": ({},)}, limits=PayloadLimits(max_depth=2)
    )


def test_the_deepest_structure_that_can_be_allowed_comes_back() -> None:
    value: Any = ()
    for _ in range(199):
        value = {(1,): value}
    text = encode_call([value], {}, limits=PayloadLimits(max_depth=200))
    assert decode_call(text, resolve_models=True) == ([value], {})


def test_size_is_limited() -> None:
    assert encode("x" * (2**20 - 2))
    assert refusal("x" * (2**20 - 1)) == (
        "value cannot be stored: the JSON text takes at least 1,048,577 bytes, the limit is "
        "1,048,576. Store the data elsewhere and pass its primary key or file name, or raise the "
        "limit. It is passed at value."
    )
    assert "the JSON text takes 1,200,002 bytes" in refusal("é" * 200_000)
    assert call_refusal(b"", data={"x": bytes(10**6)}).endswith("passed at kwargs['data']['x'].")


@pytest.mark.parametrize(
    "bounds", [{"max_bytes": 0}, {"max_depth": 0}, {"max_depth": 201}, {"max_bytes": "1"}]
)
def test_limits_are_checked(bounds: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        PayloadLimits(**bounds)


@pytest.mark.parametrize(
    "make",
    [
        lambda: "x" * 2**26,
        lambda: "é" * 2**26,
        lambda: bytes(2**26),
        lambda: [0] * 10**7,
        lambda: [[]] * 10**7,
        lambda: (0,) * 10**7,
        lambda: dict.fromkeys(range(10**6)),
        lambda: {f"key number {number}": number for number in range(100_000)},
        lambda: set(range(10**6)),
        lambda: nested(5000),
        lambda: [10**4000] * 10**5,
    ],
    ids=[
        "string",
        "wide string",
        "bytes",
        "list",
        "list of lists",
        "tuple",
        "dict of integers",
        "dict",
        "set",
        "nesting",
        "integers",
    ],
)
def test_absurd_values_are_refused_at_once(make: Callable[[], Any]) -> None:
    value = make()
    spent = []
    for _ in range(3):
        start = clock.process_time()
        with pytest.raises(TaskArgumentError):
            encode_call([value], {})
        spent.append(clock.process_time() - start)
    assert min(spent) < 0.15

    tracemalloc.start()
    try:
        with pytest.raises(TaskArgumentError):
            encode_call([value], {})
        assert tracemalloc.get_traced_memory()[1] < 32 * 2**20
    finally:
        tracemalloc.stop()


def test_a_container_counts_as_often_as_it_is_written() -> None:
    value: Any = []
    for _ in range(60):
        value = [value] * 10
    assert "the JSON text takes at least" in refusal(value)


def test_a_caller_with_no_stack_left_gets_a_refusal() -> None:
    def descend() -> str:
        try:
            return descend()
        except RecursionError:
            return refusal(nested(60))

    assert "recursion limit" in descend()


# Reading what was not written here


@for_each(
    "text",
    [
        None,
        b"1",
        1,
        "",
        "nonsense",
        "[1",
        "[1] 2",
        "{'a': 1}",
        "NaN",
        "[-Infinity]",
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        "[" * 300 + "]" * 300,
        '{"a":' * 5000 + "1" + "}" * 5000,
        '{"__sq_tuple__":[' * 300 + "]}" * 300,
        '{"__sq_dict__":[1,' * 300 + "2" + "]}" * 300,
        "9" * 5000,
        "\ud800",
        '{"__sq_unknown__": 1}',
        '{"__sq_": 1}',
        '{"__sq_' + "x" * 10**6 + '": 1}',
    ],
)
def test_text_that_is_not_ours_is_refused(text: Any) -> None:
    unreadable(text)


TAGS = [
    "bytes",
    "date",
    "datetime",
    "decimal",
    "dict",
    "frozenset",
    "model",
    "set",
    "time",
    "timedelta",
    "tuple",
    "uuid",
]


STORED = [
    None,
    True,
    1.5,
    "x" * 100_000,
    {"a": 1},
    [1],
    [[1], 2, 3, 4, 5],
    ["2025-01-01", "../../etc/passwd", 0],
    ["2025-01-01", "Nowhere/Atlantis", 0],
    ["2025-01-01", 7, 0],
    ["10:00", None, 2],
    [10**30, 0, 0],
    ["x", {}, 3],
    ["auth", "user", None],
    ["auth", "user", [1]],
    "NaN",
    "\u00e9",
    {"__sq_set__": [1]},
]


@for_each("tag, stored", product(TAGS, STORED))
def test_a_tag_takes_its_own_form_or_is_refused(tag: str, stored: Any) -> None:
    text = json.dumps({f"__sq_{tag}__": stored})
    try:
        value = decode(text, resolve_models=False)
    except DeserializationError:
        assert unreadable(text, resolve_models=False) == (
            f"The stored text has no proper value under '__sq_{tag}__'."
        )
    else:  # any list is a proper tuple, ["x", {}] a proper dict, and so on
        assert type(value).__name__.lower().removesuffix("reference") == tag


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "null",
        "[[],{}]",
        "{}",
        '{"args":[]}',
        '{"args":[],"kwargs":[]}',
        '{"args":{},"kwargs":{}}',
        '{"args":[],"kwargs":{},"more":1}',
        '{"args":{"__sq_tuple__":[]},"kwargs":{}}',
        '{"args":[],"kwargs":{"__sq_dict__":[1,2]}}',
    ],
)
def test_text_that_is_not_of_a_call_is_refused(text: str) -> None:
    with pytest.raises(DeserializationError, match="not that of a call's arguments"):
        decode_call(text, resolve_models=True)


@settings(deadline=None, max_examples=300)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.text(max_size=3) | st.sampled_from([f"__sq_{tag}__" for tag in TAGS]),
                inner,
                max_size=2,
            )
        ),
        max_leaves=15,
    )
)
def test_any_json_is_read_or_refused(data: Any) -> None:
    with suppress(DeserializationError):
        decode(json.dumps(data), resolve_models=False)


ALIKE = [(2**61 - 1) * number for number in range(20_000)]


#: What makes containers of members that have equal hashes.
CHOSEN: dict[str, Callable[[], Any]] = {
    "set": lambda: {tags.SET: ALIKE},
    "frozenset": lambda: {tags.FROZENSET: ALIKE},
    "dict": lambda: {tags.DICT: [each for number in ALIKE for each in (number, 0)]},
    "floats": lambda: {tags.SET: [float(number) for number in ALIKE[:200]] + ALIKE},
    "decimals": lambda: {tags.SET: [{tags.DECIMAL: str(number)} for number in ALIKE]},
    "uuids": lambda: {tags.SET: [{tags.UUID: str(UUID(int=number))} for number in ALIKE]},
    "tuples": lambda: {tags.SET: [{tags.TUPLE: [number]} for number in ALIKE]},
}


@pytest.mark.parametrize("members", CHOSEN)
def test_hashes_that_are_chosen_to_be_equal_are_refused(members: str) -> None:
    """To build one of these containers takes some 20 seconds."""
    with pytest.raises(DeserializationError, match="no proper value"):
        decode(json.dumps(CHOSEN[members]()))


LARGE: dict[str, Callable[[], Any]] = {
    "set": lambda: set(range(-50_000, 50_000)),
    "dict": lambda: {number * 0.5: number for number in range(50_000)},
    "durations": lambda: {timedelta(seconds=number) for number in range(5_000)},
    "tuples": lambda: {(number, number % 7) for number in range(20_000)},
}


@pytest.mark.parametrize("name", LARGE)
def test_large_sets_and_dicts_come_back(name: str) -> None:
    value, limits = LARGE[name](), PayloadLimits(max_bytes=2**24)
    assert decode(encode(value, limits=limits)) == value


def test_the_size_limit_holds_for_reading_as_well() -> None:
    limits = PayloadLimits(max_bytes=10)
    assert decode('"12345678"', limits=limits) == "12345678"
    with pytest.raises(DeserializationError, match="has 11 characters; the limit, max_payload"):
        decode('"123456789"', limits=limits)
    with pytest.raises(DeserializationError, match="has 23 characters"):
        decode_call('{"args":[],"kwargs":{}}', resolve_models=False, limits=limits)


def test_reading_imports_nothing_the_text_names() -> None:
    before = set(sys.modules)
    for tag in ("__sq_model__", "__sq_object__", "py/object"):
        text = json.dumps({tag: ["antigravity", "antigravity", 1]})
        with suppress(DeserializationError):
            decode(text)
    unreadable('{"__sq_datetime__":["2025-01-01","antigravity",0]}')
    assert "antigravity" not in set(sys.modules) - before


# Model instances


@pytest.mark.django_db
def test_an_instance_is_fetched_anew() -> None:
    item = Item.objects.create(name="old")
    text = encode_call([item], {"more": [item]})
    assert f'{{"__sq_model__":["{Item._meta.app_label}","item",{item.pk}]}}' in text
    Item.objects.update(name="new")
    args, kwargs = decode_call(text, resolve_models=True)
    assert type(args[0]) is Item
    assert [args[0].name, kwargs["more"][0].name] == ["new", "new"]


@pytest.mark.django_db
def test_instances_come_back_as_keys_and_elements() -> None:
    items = {Item.objects.create(name="a"), Item.objects.create(name="b")}
    assert decode(encode(items)) == items
    by_item = {item: item.name for item in items}
    assert decode(encode(by_item)) == by_item


@pytest.mark.django_db
def test_deferred_lazy_and_proxy_instances_are_stored_like_any() -> None:
    user = User.objects.create(username="ada")
    assert encode(User.objects.only("pk").get()) == encode(user)
    assert encode(SimpleLazyObject(lambda: user)) == encode(user)
    item = Item.objects.create(name="ada")
    again = decode(encode(NamedItem.objects.get()))
    assert type(again) is NamedItem
    assert again.pk == item.pk


def test_an_instance_can_be_left_as_a_reference() -> None:
    text = encode([User(pk=7)])
    reference = ModelReference("auth", "user", 7)
    assert decode(text, resolve_models=False) == [reference]
    assert encode([reference]) == text
    with pytest.raises(dataclasses.FrozenInstanceError):
        reference.pk = 8  # type: ignore[misc]  # Refused.


@pytest.mark.django_db
def test_a_deleted_instance_is_reported() -> None:
    item = Item.objects.create(name="gone")
    text = encode(item)
    pk = item.pk
    item.delete()
    assert unreadable(text) == (
        f"{Item._meta.label} with primary key {pk} does not exist: it was deleted after the job "
        "was enqueued, or enqueued before its transaction was committed."
    )


@pytest.fixture
def archive(tmp_path: Path, db: None, django_db_blocker: Any) -> Iterator[str]:
    """Another database, in which the first item has another name."""
    settings = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "archive")}
    with added_alias("archive", settings), django_db_blocker.unblock():
        with connections["archive"].schema_editor() as editor:
            editor.create_model(Item)
        Item.objects.using("archive").create(pk=1, name="archived")
        yield "archive"


class Apart:
    """Reads from a replica that lags behind."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return "archive" if model is Item else None

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "default"


def test_an_instance_is_fetched_from_the_database_it_was_read_from(archive: str) -> None:
    Item.objects.create(pk=1, name="present")
    archived = Item.objects.using(archive).get()
    text = encode([archived, Item.objects.get()])
    assert [each.name for each in decode(text)] == ["archived", "present"]
    # A unique key or a limit tells one from the other.
    references = decode(text, resolve_models=False)
    assert references[0] == ModelReference("testapp", "item", 1, archive) != references[1]
    assert encode(references) == text


def test_an_instance_is_fetched_from_where_its_model_is_written_to(
    archive: str, settings: Any
) -> None:
    settings.DATABASE_ROUTERS = [Apart()]
    new = Item.objects.using("default").create(pk=1, name="new")
    lagging = Item.objects.get()
    assert [each.name for each in decode(encode([new, lagging]))] == ["new", "new"]


def test_a_database_that_is_not_known_is_reported() -> None:
    assert unreadable(encode(ModelReference("auth", "user", 1, "gone"))) == (
        "auth.User was read from the database 'gone', which DATABASES does not name here."
    )
    for stored in ('["auth","user",1,2]', '["auth","user",1,"a","b"]'):
        assert "no proper value" in unreadable(f'{{"__sq_model__":{stored}}}')


@pytest.mark.django_db
@pytest.mark.parametrize("pk", ["x", 1.5, 10**30, UUID(int=1), (1, 2), b"x", "9" * 10_000])
def test_a_primary_key_that_does_not_fit_is_reported(pk: Any) -> None:
    assert "primary key" in unreadable(encode(ModelReference("auth", "user", pk)))


@pytest.mark.parametrize(
    ("app_label", "model"),
    [("auth", "nobody"), ("nothing", "user"), ("os", "system"), ("", ""), ("auth.user", "x.y")],
)
def test_a_model_that_is_not_installed_is_reported(app_label: str, model: str) -> None:
    assert unreadable(encode(ModelReference(app_label, model, 1))) == (
        f"No model ('{app_label}', '{model}') is installed: it was renamed or removed after the "
        "job was enqueued."
    )


def test_a_reference_without_a_primary_key_is_refused() -> None:
    assert call_refusal(User(username="new")) == (
        "args[0] cannot be stored: the user instance is not saved. Save it first, and enqueue the "
        "task after that."
    )


@pytest.mark.django_db
def test_an_instance_with_the_default_of_its_primary_key_is_refused_until_it_is_saved() -> None:
    refused = (
        "args[0] cannot be stored: the parcel instance is not saved. Save it first, and enqueue "
        "the task after that."
    )
    parcel, several = Parcel(), [Parcel(), Parcel()]
    assert parcel.pk is not None
    # Django takes it for a new one as well, and would insert it.
    for new in (parcel, several[0], SimpleLazyObject(Parcel), Parcel(pk=UUID(int=1))):
        assert call_refusal(new) == refused
    parcel.save()
    Parcel.objects.bulk_create(several)
    fetched = Parcel.objects.only("pk").get(pk=several[1].pk)
    for saved in (parcel, several[0], fetched, Parcel.from_db("default", ["id"], [parcel.pk])):
        assert decode(encode(saved)) == saved


@isolate_apps("tests.app")
def test_a_default_of_the_database_or_of_a_part_of_a_key_is_none_yet() -> None:
    class Counted(models.Model):  # noqa: DJ008 - nobody sees it
        number = models.IntegerField(primary_key=True, db_default=7)

        class Meta:
            app_label = "testapp"

    class Part(models.Model):  # noqa: DJ008 - nobody sees it
        pk = models.CompositePrimaryKey("owner", "number")
        owner = models.IntegerField()
        number = models.UUIDField(default=uuid4)

        class Meta:
            app_label = "testapp"

    for new in (Counted(), Part(owner=1)):
        assert "instance is not saved. Save it first" in call_refusal(new)
    # It can only have been given: it stands for a row.
    assert encode(Counted(pk=8)) == encode(ModelReference("testapp", "counted", 8))
    assert encode(User(pk=8)) == encode(ModelReference("auth", "user", 8))


def test_an_odd_primary_key_is_refused_by_path() -> None:
    assert call_refusal(User(pk=float("nan"))).startswith("args[0].pk cannot be stored: NaN")


def test_arguments_need_no_configured_django() -> None:
    script = (
        "from steady_queue_core.arguments import *\n"
        "assert decode(encode([1, (2,)])) == [1, (2,)]\n"
        "try: encode(lambda: 1)\n"
        "except TaskArgumentError: print('refused')\n"
    )
    environment = {
        key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"
    }
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("refused\n", "")
