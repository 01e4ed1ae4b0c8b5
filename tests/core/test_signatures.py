"""A call that does not fit the function of its task is an error where it is enqueued."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial, wraps
from types import ModuleType
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from steady_queue_core import Unique, call, enqueue_many, limits_concurrency, task
from steady_queue_core.arguments import DeserializationError, ModelReference
from steady_queue_core.arguments import signature as signatures
from steady_queue_core.arguments.signature import Signature
from steady_queue_core.listings.payloads import Redactor
from steady_queue_core.models import Job
from steady_queue_core.tasks.model_arguments import require_permitted_models

from .driver import Driver
from .samples import echo, real_transactions, stock, stubborn


@task
def resize(picture: int, /, width: int, *, quality: int = 80) -> None:
    """Take arguments of all kinds."""


@task
@transaction.atomic
def save(number: int) -> None:
    """Run in a transaction."""


def injected(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def wrapper(*args: Any) -> Any:
        return function("injected", *args)

    return wrapper


@task
@injected
def greet(greeting: str, name: str) -> None:
    """Get an argument that who enqueues does not give."""


@task(takes_context=True)
def handle(context: Any, event: str, **payload: Any) -> None:
    """Take the context, and whatever is passed by name."""


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("made", "args", "kwargs", "problem"),
    [
        (resize, [1], {}, "missing a required argument: 'width'"),
        (resize, [1, 2, 3], {}, "too many positional arguments"),
        (resize, [1], {"width": 2, "height": 3}, "got an unexpected keyword argument 'height'"),
        (resize, [1, 2], {"width": 2}, "multiple values for argument 'width'"),
        (stock, [], {"b": 1}, "missing a required argument: 'a'"),
        (stubborn, [], {}, "missing a required argument: 'succeeds_in'"),
        (stubborn, [1, 2], {}, "too many positional arguments"),
        (stubborn, [1], {"context": 2}, "got an unexpected keyword argument 'context'"),
        (save, [], {}, "missing a required argument: 'number'"),
        (handle, ["paid"], {"context": 1}, "'context' is the context, which the worker passes"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_by_every_way_to_enqueue(
    made: Any, args: list[Any], kwargs: dict[str, Any], problem: str
) -> None:
    for enqueue in (made.enqueue, async_to_sync(made.aenqueue)):
        with pytest.raises(TypeError, match=problem) as refused:
            enqueue(*args, **kwargs)
        assert str(refused.value).startswith(f"{made.module_path}(")
    with pytest.raises(TypeError, match=rf"^calls\[1\]: .*{problem}"):
        enqueue_many([call(echo), call(made, *args, **kwargs)])
    assert Job.objects.count() == 0


@pytest.mark.django_db
def test_a_call_that_fits_is_stored() -> None:
    resize.enqueue(1, 2)
    resize.enqueue(1, width=2, quality=3)
    stubborn.enqueue(1)
    save.enqueue(number=1)
    greet.enqueue("Ada")
    handle.enqueue("paid", by="Ada")
    echo.enqueue(1, 2, c=3)
    assert Job.objects.count() == 7


def no_parameters() -> None: ...
def by_position(a: Any, b: Any = 1, /) -> None: ...
def by_name(*, a: Any, b: Any = 1) -> None: ...
def any_position(a: Any, *args: Any) -> None: ...
def any_keyword(a: Any, /, b: Any, **kwargs: Any) -> None: ...
def mixed(a: Any, /, b: Any, c: Any = 1, *args: Any, d: Any, e: Any = 2) -> None: ...


@pytest.mark.parametrize(
    "function", [no_parameters, by_position, by_name, any_position, any_keyword, mixed]
)
@given(
    args=st.lists(st.none(), max_size=5),
    kwargs=st.dictionaries(st.sampled_from("abcdef"), st.none()),
)
def test_what_fits_is_what_python_would_call(
    function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
) -> None:
    try:
        function(*args, **kwargs)
        callable_like_this = True
    except TypeError:
        callable_like_this = False
    found = Signature(function, takes_context=False)
    assert (found.misfit(args, kwargs) is None) is callable_like_this


def of_a_default(a: Any = 1, /, **kwargs: Any) -> None: ...


def test_an_argument_is_known_by_the_name_of_its_parameter() -> None:
    found = Signature(of_a_default, takes_context=False)
    assert found.value_of("a", (2,), {"a": 3}) == 2
    assert found.value_of("a", (), {"a": 3}) == 1
    assert found.value_of("b", (), {"b": 3}) == 3
    with pytest.raises(LookupError):
        found.value_of("b", (), {"a": 3})


#: A task whose annotation only a type checker knows, as a project writes it for Python 3.14.
DEFERRED = """
from typing import TYPE_CHECKING

from django.contrib.auth.models import Group
from steady_queue_core import task

if TYPE_CHECKING:
    from nowhere import Order


@task(takes_context=True)
def ship(context, order: Order, group: Group, times: int = 1) -> Order: ...
"""


@pytest.mark.skipif(sys.version_info < (3, 14), reason="there annotations are evaluated at once")
def test_annotations_that_only_type_checkers_know_are_left_alone() -> None:
    module = ModuleType("deferred")
    exec(DEFERRED, vars(module))
    assert str(Signature(module.ship.func, True)) == "(order, group, times=1)"
    models = partial(require_permitted_models, module.ship, kwargs={}, listed=None)
    models(args=[ModelReference("auth", "user", 1), ModelReference("auth", "group", 1)])
    with pytest.raises(DeserializationError, match="as 'group'"):
        models(args=[ModelReference("auth", "user", 1), ModelReference("auth", "user", 1)])
    assert Redactor().names("tests.core.samples.echo", 1) is not None


def test_signatures_are_read_without_evaluating_annotations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on Python 3.14, where ``inspect`` evaluates them unless it is told not to."""
    known = inspect.signature

    def signature(function: Any, *, annotation_format: str = "value", **options: Any) -> Any:
        if annotation_format == "value" and inspect.isfunction(function):
            raise NameError("name 'Order' is not defined")
        return known(function, **options)

    monkeypatch.setattr(inspect, "signature", signature)
    with pytest.raises(NameError):
        Signature(stock.func, False)
    monkeypatch.setattr(signatures, "_OF_SIGNATURES", {"annotation_format": "forwardref"})

    def ship(context: Any, order: Any) -> None: ...

    assert str(Signature(ship, True)) == "(order)"
    assert not signatures.takes_any_position(ship)
    require_permitted_models(stock, [1], {}, None)
    assert Redactor().names(stock.module_path, 1) is not None


@task
def serve(self: int, items: Any = (), name: str = "") -> list[Any]:
    return [self, *items, name]


@task
async def aserve(self: int, items: Any = ()) -> list[Any]:
    return [self, *items]


@limits_concurrency(key=lambda self, **named: f"of {self}")
@task(unique=Unique(key=lambda self, **named: f"of {self} {named}"))
def serve_alone(self: int, items: Any = ()) -> list[Any]:
    return [self, *items]


@real_transactions
def test_parameters_may_have_the_names_of_ours() -> None:
    results = [
        serve.enqueue(self=1, items=[2]),
        async_to_sync(partial(aserve.aenqueue, self=1, items=[2]))(),
        serve_alone.using(unique_key="a").enqueue(self=1, items=[2]),
        serve_alone.enqueue(self=1, items=[2]),
    ]
    group = serve.map([1, 3], items=[2]).enqueue()
    Driver().work()
    for result in results:
        result.refresh()
        assert result.return_value[:2] == [1, 2]
    group.refresh()
    assert group.values() == [[1, 2, ""], [3, 2, ""]]


@pytest.mark.django_db
@pytest.mark.parametrize("with_middleware", [False, True])
def test_the_testing_kit_calls_such_functions_as_well(settings: Any, with_middleware: bool) -> None:
    options = {"middleware": ["steady_queue_core.middleware.Middleware"]} if with_middleware else {}
    settings.TASKS = {
        "default": {
            "BACKEND": "steady_queue_core.testing.ImmediateBackend", "QUEUES": [],
            "OPTIONS": options,
        }
    }  # fmt: skip
    assert serve.enqueue(self=1, items=[2]).return_value == [1, 2, ""]
    assert aserve.enqueue(self=1, items=[2]).return_value == [1, 2]
