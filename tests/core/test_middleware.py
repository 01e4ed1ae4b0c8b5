"""Middleware: around enqueues and executions, in order, and what it may do there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from steady_queue_core import call, chain, enqueue_many
from steady_queue_core.compat import InvalidTask, TaskResultStatus
from steady_queue_core.conformance import threads
from steady_queue_core.middleware import Middleware, install, uninstall
from steady_queue_core.models import Job
from steady_queue_core.testing import override_backends, run_enqueued_tasks

from . import middleware
from .driver import Driver
from .middleware import HERE, Refused
from .samples import (
    OURS,
    backend,
    breaks,
    configured,
    echo,
    own_context,
    real_transactions,
    stock,
    stock_coroutine,
    stubborn,
)


@pytest.fixture(autouse=True)
def seen() -> Iterator[list[str]]:
    middleware.seen.clear()
    yield middleware.seen
    middleware.seen.clear()


def use(settings: Any, *names: str) -> None:
    paths = [f"{HERE}.{name}" for name in names]
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"middleware": paths}}}


@real_transactions
def test_the_first_is_the_outermost_around_enqueue_and_execution(
    settings: Any, seen: list[str]
) -> None:
    use(settings, "Outer", "Inner")
    driver = Driver()
    assert driver.finish(stock.enqueue(1, b=2)).return_value == 3
    assert driver.finish(stock_coroutine.enqueue(5)).return_value == 6
    assert seen == [
        "outer stores [[1]]", "inner stores [[1]]", "inner stored [True]", "outer stored [True]",
        "outer runs [1] in attempt 1", "inner runs [1] in attempt 1",
        "outer stores [[5]]", "inner stores [[5]]", "inner stored [True]", "outer stored [True]",
        "outer awaits [5]", "inner awaits [5]",
    ]  # fmt: skip


@real_transactions
def test_each_thread_that_enqueues_has_an_instance_and_executions_share_one(settings: Any) -> None:
    use(settings, "Counting")
    middleware.Counting.made.clear()
    stock.enqueue(1, b=1)
    stock.enqueue(2, b=2)
    assert len(middleware.Counting.made) == 1
    threads.run_all("default", [lambda: stock.enqueue(3, b=3)] * 2, 10)
    assert len(middleware.Counting.made) == 3
    driver = Driver()
    claims = driver.claim()

    def run_all() -> list[bool]:
        return [driver.run(claim).error is None for claim in claims]

    run_all()
    before = len(middleware.Counting.made)
    threads.run_all("default", [run_all] * 2, 10)
    assert (before, len(middleware.Counting.made)) == (3, 3)


@real_transactions
def test_a_task_with_a_context_gets_it_as_ever(settings: Any) -> None:
    use(settings, "Outer")
    driver = Driver()
    assert driver.finish(own_context.enqueue("x")).return_value[:2] == ["x", 1]
    result = driver.finish(stubborn.enqueue(2))
    assert result.return_value == f"in attempt 2 of {result.id}"


@real_transactions
def test_errors_of_tasks_pass_through(settings: Any, seen: list[str]) -> None:
    use(settings, "Outer", "Inner")
    result = Driver().finish(breaks.enqueue())
    assert result.errors[0].exception_class is LookupError
    assert seen[-2:] == ["inner sees LookupError", "outer sees LookupError"]


@real_transactions
def test_calls_of_enqueue_many_are_stored_together(settings: Any, seen: list[str]) -> None:
    use(settings, "Outer")
    results = enqueue_many([call(echo, number) for number in range(3)])
    assert [result.args for result in results] == [[0], [1], [2]]
    assert seen == ["outer stores [[0], [1], [2]]", "outer stored [True, True, True]"]


@real_transactions
def test_in_a_coroutine_as_well(settings: Any, seen: list[str]) -> None:
    use(settings, "Outer")
    assert async_to_sync(echo.aenqueue)(1).id
    assert seen == ["outer stores [[1]]", "outer stored [True]"]


@real_transactions
def test_calls_that_wait_for_the_commit_pass_when_they_are_made(
    settings: Any, seen: list[str]
) -> None:
    use(settings, "Outer")
    with transaction.atomic():
        configured.enqueue()
        assert seen == ["outer stores [[]]", "outer stored [False]"]
    assert Job.objects.count() == 1
    assert len(seen) == 2


@real_transactions
def test_recurring_runs_pass_as_well(settings: Any, seen: list[str]) -> None:
    use(settings, "Outer")
    backend().enqueue_now(echo, [1], {})
    assert seen == ["outer stores [[1]]", "outer stored [True]"]


@real_transactions
def test_a_refused_call_is_raised_to_its_caller_and_stores_nothing(settings: Any) -> None:
    use(settings, "Outer", "Refusing")
    for refused in (
        lambda: echo.enqueue(refuse=True),
        lambda: enqueue_many([call(echo, 1), call(echo, refuse=True)]),
        lambda: async_to_sync(echo.aenqueue)(refuse=True),
    ):
        with pytest.raises(Refused, match="not this one"):
            refused()
    assert not Job.objects.exists()


@real_transactions
def test_a_refused_execution_ends_the_attempt_with_its_error(settings: Any) -> None:
    use(settings, "Refusing")
    driver = Driver()
    for refused in (echo, stock_coroutine):
        result = driver.finish(refused.enqueue("refuse"))
        assert result.status == TaskResultStatus.FAILED
        assert result.errors[0].exception_class is Refused


@real_transactions
def test_an_answer_takes_the_place_of_the_task(settings: Any) -> None:
    use(settings, "Answering")
    driver = Driver()
    for skipped in (breaks, stock_coroutine):
        result = driver.finish(skipped.enqueue(*([1] if skipped is stock_coroutine else [])))
        assert result.return_value == "answered"


@real_transactions
def test_a_middleware_that_loses_the_results_is_named(settings: Any) -> None:
    use(settings, "Outer", "Forgetful")
    with transaction.atomic(), pytest.raises(TypeError) as caught:
        echo.enqueue()
    assert str(caught.value) == (
        f"{HERE}.Forgetful.enqueue() must return the list of results that proceed(calls) returns, "
        "one for each call, not NoneType"
    )


@real_transactions
def test_a_chain_whose_results_are_made_up_is_not_stored(settings: Any) -> None:
    use(settings, "Inventive")
    with pytest.raises(InvalidTask, match=r"without a call of proceed\(\)"):
        chain(call(echo, 1), call(echo, 2)).enqueue()
    assert not Job.objects.exists()


@pytest.fixture
def everywhere() -> Iterator[list[Middleware]]:
    """Middleware that is installed for all backends, while the test runs."""
    installed: list[Middleware] = [middleware.Outer(), middleware.Inner()]
    for each in installed:
        install(each)
    yield installed
    for each in installed:
        uninstall(each)


@real_transactions
def test_what_is_installed_is_around_that_of_each_backend(
    settings: Any, seen: list[str], everywhere: list[Middleware]
) -> None:
    use(settings, "Refusing")
    settings.TASKS["other"] = OURS
    install(everywhere[0])  # Twice is once.
    for alias in ("default", "other"):
        assert Driver().finish(stock.using(backend=alias).enqueue(1)).return_value == 2
    assert seen == [
        "outer stores [[1]]", "inner stores [[1]]", "inner stored [True]", "outer stored [True]",
        "outer runs [1] in attempt 1", "inner runs [1] in attempt 1",
    ] * 2  # fmt: skip
    seen.clear()
    with pytest.raises(Refused):
        echo.enqueue(refuse=True)
    assert seen == ["outer stores [[]]", "inner stores [[]]"]
    for each in everywhere:
        uninstall(each)
    seen.clear()
    stock.using(backend="other").enqueue(1)
    assert (seen, backend("other").middleware) == ([], None)


def test_only_middleware_can_be_installed() -> None:
    wrong: Any = middleware.Outer
    with pytest.raises(TypeError, match=r"^install\(\) needs an instance of a subclass of Midd"):
        install(wrong)
    with pytest.raises(ValueError, match=r"has execute\(\), but no aexecute\(\)"):
        install(middleware.OfFunctions())


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (f"{HERE}.Missing", f"{HERE + '.Missing'!r} cannot be imported: "),
        ("nowhere.Missing", "'nowhere.Missing' cannot be imported: No module named 'nowhere'"),
        (f"{HERE}.Unrelated", "is not a subclass of steady_queue_core.middleware.Middleware"),
        (f"{HERE}.seen", "is not a subclass of steady_queue_core.middleware.Middleware"),
        (
            f"{HERE}.OfFunctions",
            f"{HERE}.OfFunctions has execute(), but no aexecute(): it would leave out tasks that "
            "are coroutines",
        ),
        (
            f"{HERE}.OfCoroutines",
            f"{HERE}.OfCoroutines has aexecute(), but no execute(): it would leave out tasks that "
            "are functions",
        ),
        (f"{HERE}.Blocking", f"{HERE}.Blocking.aexecute() must be a coroutine function"),
        (f"{HERE}.Broken", f"{HERE}.Broken() raised RuntimeError: no connection"),
        ("Timed", "str 'Timed' is not a dotted path, such as 'shop.middleware.Timed'"),
    ],
)
def test_a_wrong_path_is_reported_by_the_check_and_by_an_enqueue(
    settings: Any, path: str, problem: str
) -> None:
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"middleware": [path]}}}
    [error] = backend().check()
    assert error.id == "steady_queue.E004"
    assert error.msg.startswith("TASKS['default']['OPTIONS']['middleware']: ")
    assert problem in error.msg
    with pytest.raises(ImproperlyConfigured) as caught:
        echo.enqueue()
    assert problem in str(caught.value)


@pytest.mark.parametrize("kind", ["immediate", "dummy"])
def test_backends_for_tests_have_it_too(settings: Any, seen: list[str], kind: str) -> None:
    use(settings, "Outer")
    with override_backends(kind):
        results = [stock.enqueue(1), stock_coroutine.enqueue(1)]
        if kind == "dummy":
            run_enqueued_tasks()
            for result in results:
                result.refresh()
        assert [result.return_value for result in results] == [2, 2]
    assert [line for line in seen if "store" not in line] == [
        "outer runs [1] in attempt 1",
        "outer awaits [1]",
    ]
