"""What cannot be stored is refused when it is enqueued, in words that help; no row is written."""

from __future__ import annotations

import io
import json
import math
import re
import time
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from steady_queue_core import recurring, task
from steady_queue_core.arguments import TaskArgumentError
from steady_queue_core.compat import InvalidTask, Task, task_enqueued
from steady_queue_core.configuration import Configuration, ConfigurationError

from ..app.models import Item

BACKEND = "steady_queue_core.backend.SteadyQueueBackend"
STORABLE = (
    "None, bool, int, float, str, bytes, list, tuple, dict, set, frozenset, datetime, date, "
    "time, timedelta, Decimal, UUID, a saved model instance"
)

pytestmark = pytest.mark.django_db


@task
def target(*args: Any, **kwargs: Any) -> None:
    """Take anything."""


@task(enqueue_on_commit=True)
def on_commit(*args: Any, **kwargs: Any) -> None:
    """Take anything, later."""


@dataclass
class Point:
    x: int


class Color(Enum):
    RED = 1


class Hostile:
    """Raises, whatever is done with it."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"{name} of a hostile object")

    __repr__ = __str__ = __iter__ = __len__ = __hash__ = __eq__ = __getattribute__  # type: ignore


def stored_rows() -> int:
    models = apps.get_app_config("steady_queue").get_models()
    return sum(model._base_manager.count() for model in models)


@pytest.fixture(autouse=True)
def _nothing_is_stored() -> Iterator[None]:
    announced: list[Any] = []

    def note(task_result: Any, **kwargs: Any) -> None:
        announced.append(task_result)

    task_enqueued.connect(note)
    yield
    task_enqueued.disconnect(note)
    assert stored_rows() == 0
    assert not announced


def ways_to_enqueue(chosen: Task = target) -> list[Callable[..., Any]]:
    return [chosen.enqueue, async_to_sync(chosen.aenqueue)]


def refusal_of(*args: Any, **kwargs: Any) -> str:
    """Return the message with which every way to enqueue refuses the arguments."""
    messages = set()
    for enqueue in [*ways_to_enqueue(), *ways_to_enqueue(on_commit)]:
        # The refusal leaves the caller's transaction as it is.
        with transaction.atomic():
            with pytest.raises(TaskArgumentError) as caught:
                enqueue(*args, **kwargs)
            Item.objects.create(name="beside it")
        messages.add(str(caught.value))
        assert isinstance(caught.value, TypeError)
        assert isinstance(caught.value, ValueError)
    [message] = messages
    return message


def cycle() -> list[Any]:
    inside: list[Any] = []
    inside.append({"again": inside})
    return inside


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def unsupported(what: str, remedy: str) -> str:
    return f"{what} is not one of the types a task argument may have ({STORABLE}). {remedy}"


FUNCTION = "Pass the data it works on and choose the function inside the task."
PLAIN = "Pass the few plain values of it that the task needs."


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (lambda: 1, unsupported("a function ('<lambda>')", FUNCTION)),
        (print, unsupported("a value of type builtin_function_or_method", FUNCTION)),
        (Point, unsupported("a class ('Point')", "Pass its name and choose the class inside the "
                            "task.")),
        (Point(1), unsupported("a value of type Point", "Pass dataclasses.asdict(...) of it, or "
                               "its fields.")),
        (Color.RED, unsupported("a value of type Color", "Pass its .value or its .name.")),
        (io.BytesIO(), unsupported("a value of type BytesIO", "Pass its path, or its content as "
                                   "str or bytes.")),
        (object(), unsupported("a value of type object", PLAIN)),
        (HttpRequest(), unsupported("a value of type HttpRequest", PLAIN)),
        (deque([1]), unsupported("a value of type deque", "Pass list(...) of it.")),
        (gettext_lazy("text"), unsupported("a value of type lazy.<locals>.__proxy__", "Pass "
                               "str(...) of it.")),
        (bytearray(b"1"), unsupported("a value of type bytearray", "Pass bytes(...) of it.")),
        (1j, unsupported("a value of type complex", "Pass its real and imaginary parts.")),
        (range(3), unsupported("a value of type range", "Pass list(...) of it.")),
        (math.nan, "NaN and infinity have no JSON form. Pass None, or a str."),
        (-math.inf, "NaN and infinity have no JSON form. Pass None, or a str."),
        (Decimal("sNaN"), "a Decimal must be finite. Pass None, or a str."),
        ("a\0b", "text with a NUL character cannot be kept by every database. Pass bytes."),
        ("ab\ud800", "the text has a lone surrogate (at index 2) and is not valid Unicode. Pass "
                     "bytes, or decode it with another error handler."),
        (10**5000, "an integer of 16,610 bits has too many digits. Pass it as bytes."),
        (Item(name="new"), "the item instance is not saved. Save it first, and enqueue the task "
                           "after that."),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)  # fmt: skip
def test_an_argument_that_cannot_be_stored_is_named_by_its_path(value: Any, reason: str) -> None:
    assert refusal_of(value) == f"args[0] cannot be stored: {reason}"
    assert refusal_of(1, [{"x": (value,)}]) == f"args[1][0]['x'][0] cannot be stored: {reason}"
    assert refusal_of(box={"x": value}) == f"kwargs['box']['x'] cannot be stored: {reason}"


def test_a_query_set_and_an_open_file_are_named(tmp_path: Any) -> None:
    assert refusal_of(Item.objects.all()) == (
        "args[0] cannot be stored: " + unsupported("a value of type QuerySet", "Pass a list of "
                                                   "primary keys, or list(...) of it.")
    )  # fmt: skip
    with open(tmp_path / "file", "w") as file:
        assert refusal_of({"x": file}) == (
            "args[0]['x'] cannot be stored: " + unsupported("a value of type TextIOWrapper",
            "Pass its path, or its content as str or bytes.")
        )  # fmt: skip


def test_a_cycle_is_named_where_it_closes() -> None:
    assert refusal_of({"x": cycle()}) == (
        "args[0]['x'][0]['again'] cannot be stored: it is a cycle, a container inside itself. "
        "Pass the parts of it that the task needs."
    )


def test_a_hostile_object_is_refused_without_a_call_to_it() -> None:
    message = refusal_of([Hostile()])
    assert message.startswith("args[0][0] cannot be stored: a value of type Hostile is not one of")


def test_keys_are_refused_like_values() -> None:
    assert refusal_of({"a\0": 1}).startswith("args[0]['a\\x00'] cannot be stored: text with a NUL")
    assert refusal_of(**{"\ud800": 1}).startswith("kwargs['\\ud800'] cannot be stored: the text")
    assert refusal_of({Color.RED: 1}).startswith("args[0][<Color>] cannot be stored: a value of")


@pytest.mark.parametrize("value", [10**4400, 10**5000, -(10**5000)], ids=["4401", "5001", "-"])
def test_integers_that_python_would_not_read_back_are_refused(value: int) -> None:
    assert "has too many digits. Pass it as bytes." in refusal_of(value)


LIMIT = 1024 * 1024
TOO_LARGE = re.compile(
    r"the call cannot be stored: the JSON text takes (?:at least )?[\d,]+ bytes, the limit is "
    r"1,048,576\. Store the data elsewhere and pass its primary key or file name, or raise the "
    r"limit\.(?: It is passed at [\w\[\]']+\.)?"
)


@pytest.mark.parametrize(
    "make",
    [
        lambda: "x" * LIMIT,
        lambda: "x" * (64 * LIMIT),
        lambda: "é" * (LIMIT // 5),
        lambda: b"x" * (64 * LIMIT),
        lambda: ["x"] * (4 * LIMIT),
        pytest.param(lambda: [None] * LIMIT, marks=pytest.mark.thorough),
        lambda: {str(number): number for number in range(200_000)},
        pytest.param(
            lambda: {number: number for number in range(200_000)}, marks=pytest.mark.thorough
        ),
        lambda: [["x" * 1000] * 100] * 100,
    ],
    ids=["at once", "text", "escapes", "bytes", "list", "nones", "dict", "int keys", "shared"],
)
def test_too_large_a_payload_is_refused_fast_and_without_a_copy(make: Callable[[], Any]) -> None:
    value = make()
    tracemalloc.start()
    try:
        with pytest.raises(TaskArgumentError) as caught:
            target.enqueue(value)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert TOO_LARGE.fullmatch(str(caught.value)), str(caught.value)
    assert peak < 64 * LIMIT
    # About 0.1 s, by the speed of this machine.
    least = seconds_of(lambda: json.dumps({str(n): n for n in range(200_000)}))
    assert seconds_of(lambda: refuse(value)) < least


def refuse(value: Any) -> None:
    with pytest.raises(TaskArgumentError):
        target.enqueue(value)


def seconds_of(function: Callable[[], object]) -> float:
    """Return the best of three times, on the processor: the machine may be busy."""
    times = []
    for _ in range(3):
        began = time.thread_time()
        function()
        times.append(time.thread_time() - began)
    return min(times)


@pytest.mark.parametrize("depth", [65, 5000])
def test_too_deep_a_payload_is_refused_fast(depth: int) -> None:
    value = nested(depth)
    message = refusal_of(value)
    shown = "[0]" * 8 + "..." + "[0]" * 4
    assert message == (
        f"args{shown} cannot be stored: it is nested more than 64 levels deep. Pass a flatter "
        "structure, or raise the limit."
    )
    assert seconds_of(lambda: refuse(value)) < 0.1


def test_the_limits_can_be_set(settings: Any) -> None:
    options = {"max_payload_bytes": 100, "max_payload_depth": 2}
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": options}}
    assert "the limit is 100." in refusal_of("x" * 101)
    assert "nested more than 2 levels deep" in refusal_of([[[]]])


TOO_LONG = "has 256 characters, at most 255 are allowed"


@pytest.mark.parametrize(
    ("name", "shown", "reason"),
    [
        ("", "''", "is empty"),
        ("x" * 256, "'" + "x" * 76 + "...'", TOO_LONG),
        ("é" * 256, "'" + "é" * 76 + "...'", TOO_LONG),
    ],
    ids=["empty", "long", "long letters"],
)
def test_a_queue_name_needs_1_to_255_characters(name: str, shown: str, reason: str) -> None:
    with pytest.raises(InvalidTask) as caught:
        target.using(queue_name=name)
    assert str(caught.value) == f"Queue name {shown} is not valid: it {reason}."


@pytest.mark.parametrize(
    "name", [" ", " a", "a ", "a\n", "a\0b", "\x1b[31m", "a\u2028b", "a\u202eb", "\ud800", "\t"]
)
def test_a_queue_name_has_no_control_characters(name: str) -> None:
    with pytest.raises(InvalidTask) as caught:
        target.using(queue_name=name)
    assert str(caught.value) == (
        f"Queue name {name!r} is not valid: it contains control or other invisible characters, "
        "or leading or trailing whitespace."
    )
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["a\nb", "a\u2028b", "a\u200b", "a\u00a0b", "\u00ad", "x" * 256])
def test_what_no_task_can_be_put_into_no_worker_serves(name: str) -> None:
    """One rule for all who name a queue."""
    with pytest.raises(InvalidTask):
        target.using(queue_name=name)
    for entry in (name, f"{name}*"):
        with pytest.raises(ConfigurationError):
            Configuration.Worker(queues=[entry])
    with pytest.raises(ValueError, match="queue_name"):
        recurring(schedule="@daily", key="unfit", queue_name=name)(target)


@pytest.mark.parametrize(("name", "kind"), [(5, "int"), (b"mail", "bytes"), (("a",), "tuple")])
def test_a_queue_name_is_text(name: Any, kind: str) -> None:
    with pytest.raises(InvalidTask, match=f"Queue name of type {kind} is not valid"):
        target.using(queue_name=name)


def test_a_queue_that_the_backend_does_not_have_is_refused(settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": ["default"]}}
    with pytest.raises(InvalidTask, match=r"^Queue 'mail' is not valid for backend\.$"):
        target.using(queue_name="mail")


def test_a_task_that_has_become_invalid_is_refused_when_it_is_enqueued(settings: Any) -> None:
    made = target.using(queue_name="mail")
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": ["default"]}}
    for enqueue in ways_to_enqueue(made):
        with pytest.raises(InvalidTask, match="Queue 'mail' is not valid for backend"):
            enqueue()


@pytest.mark.parametrize("priority", [101, -101, 1.5, 10**30, math.inf])
def test_a_priority_out_of_range_is_refused(priority: float) -> None:
    with pytest.raises(InvalidTask) as caught:
        target.using(priority=priority)
    assert str(caught.value) == "priority must be a whole number between -100 and 100."


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(InvalidTask) as caught:
        target.using(run_after=datetime(2030, 1, 1))
    assert str(caught.value) == "run_after must be an aware datetime."


def _named(name: str) -> Callable[..., None]:
    def made() -> None:
        """Have the name that it is given."""

    made.__qualname__ = name
    return made


def test_a_task_whose_path_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidTask) as caught:
        task(_named("f" * 256))
    shown = repr(f"{__name__}.{'f' * 256}")[:77]
    assert str(caught.value).endswith(
        f": Task {shown}...' is not valid: its path has more than 255 characters."
    )
