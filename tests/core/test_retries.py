"""Back-offs: the delay before a failed job runs again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steady_queue_core import retries
from steady_queue_core.processes.base.thread_interrupt import TaskInterrupted
from steady_queue_core.retries import as_backoff, constant, delay_of, exponential

ERROR = RuntimeError("boom")


@dataclass
class Result:
    attempts: int = 1


def five_seconds(exception: BaseException, task_result: Any) -> float:
    return 5


NOT_CALLABLE = 5


async def coroutine_backoff(exception: BaseException, task_result: Any) -> float:
    return 5


def unspread(low: float, high: float) -> float:
    return 1.0


def test_exponential_doubles_up_to_its_longest() -> None:
    backoff = exponential(first=1, factor=2, longest=10, random=unspread)
    assert [backoff(ERROR, Result(n)) for n in (1, 2, 3, 4, 5, 1000)] == [1, 2, 4, 8, 10, 10]


def test_jitter_multiplies_by_a_random_number_around_one() -> None:
    assert exponential(10, jitter=0.25, random=lambda low, high: low)(ERROR, Result()) == 7.5
    assert exponential(10, jitter=0.25, random=lambda low, high: high)(ERROR, Result()) == 12.5


@given(
    st.floats(0, 1e6), st.floats(1, 1e6), st.floats(0, 1e6), st.floats(0, 1), st.integers(-1, 10**6)
)
def test_delays_stay_in_their_bounds(
    first: float, factor: float, longest: float, jitter: float, attempts: int
) -> None:
    delay = exponential(first, factor, longest, jitter)(ERROR, Result(attempts))
    assert 0 <= delay <= longest * (1 + jitter) + 1e-5


def test_the_default_waits_about_a_second_and_at_most_about_an_hour() -> None:
    assert 0.75 <= retries.DEFAULT(ERROR, Result(1)) <= 1.25
    assert 2700 <= retries.DEFAULT(ERROR, Result(100)) <= 4500


def test_constant_waits_the_same_each_time() -> None:
    assert [constant(timedelta(minutes=1))(ERROR, Result(n)) for n in (1, 5)] == [60, 60]
    assert constant(10, jitter=0.5, random=lambda low, high: high)(ERROR, Result()) == 15
    assert constant(0)(ERROR, Result()) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"first": -1}, "first must be"),
        ({"first": "1"}, "first must be"),
        ({"longest": math.inf}, "longest must be"),
        ({"longest": math.nan}, "longest must be"),
        ({"factor": 0.5}, "factor must be a number of at least 1"),
        ({"factor": math.nan}, "factor must be"),
        ({"jitter": 1.5}, "jitter must be a number from 0 to 1"),
        ({"jitter": -0.1}, "jitter must be"),
        ({"jitter": True}, "jitter must be"),
    ],
)
def test_exponential_refuses_parameters_without_meaning(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        exponential(**arguments)


def test_as_backoff_takes_what_settings_hold() -> None:
    assert as_backoff(None) is retries.DEFAULT
    assert as_backoff(five_seconds) is five_seconds
    assert as_backoff(f"{__name__}.five_seconds") is five_seconds
    assert as_backoff(2.5)(ERROR, Result()) == 2.5
    assert as_backoff(timedelta(minutes=2))(ERROR, Result()) == 120


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no.such.module", "backoff 'no.such.module' cannot be imported"),
        ("nodots", "cannot be imported"),
        (f"{__name__}.missing", "cannot be imported"),
        (f"{__name__}.NOT_CALLABLE", "is not callable, but int"),
        (coroutine_backoff, "coroutine function"),
        (-1, "from 0 to 3650 days, got int -1"),
        (math.nan, "got float nan"),
        (True, "got bool True"),
        ([], "not list"),
    ],
)
def test_as_backoff_refuses_the_rest(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_backoff(value)


@pytest.mark.parametrize(
    ("returned", "delay"),
    [(None, None), (0, 0.0), (5, 5.0), (1.5, 1.5), (timedelta(minutes=1), 60.0)],
)
def test_delay_of_returns_seconds_or_none(returned: Any, delay: float | None) -> None:
    assert delay_of(lambda exception, task_result: returned, ERROR, Result()) == delay


@pytest.mark.parametrize(
    "returned",
    [
        math.nan,
        math.inf,
        -1,
        -0.001,
        timedelta(-1),
        "5",
        True,
        pytest.param(10**400, id="huge"),
        pytest.param(10**5000, id="unprintable"),
        timedelta.max,
        4e8,
        [],
        b"",
    ],
)
def test_delay_of_refuses_results_that_are_no_delay(returned: Any) -> None:
    with pytest.raises(ValueError, match="its result must be a number of seconds") as caught:
        delay_of(lambda exception, task_result: returned, ERROR, Result())
    assert "lambda" in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("error", [TaskInterrupted(), KeyboardInterrupt()])
def test_delay_of_lets_through_what_is_to_end_the_thread(error: BaseException) -> None:
    """The queue interrupts it where it stops, also in a back-off; Ctrl-C ends the main thread."""

    def interrupted(exception: BaseException, task_result: Any) -> float:
        raise error

    with pytest.raises(type(error)):
        delay_of(interrupted, ERROR, Result())


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(3), GeneratorExit()])
def test_delay_of_turns_an_exception_of_the_backoff_into_a_value_error(
    error: BaseException,
) -> None:
    def broken(exception: BaseException, task_result: Any) -> float:
        raise error

    with pytest.raises(ValueError, match=f"broken raised {type(error).__name__}") as caught:
        delay_of(broken, ERROR, Result())
    assert caught.value.__cause__ is error


def test_delay_of_hands_over_the_exception_and_the_result() -> None:
    seen: list[object] = []

    def remember(exception: BaseException, task_result: Any) -> None:
        seen.extend([exception, task_result])

    backoff: Callable[[BaseException, Any], None] = remember
    assert delay_of(backoff, ERROR, result := Result(3)) is None
    assert seen == [ERROR, result]
