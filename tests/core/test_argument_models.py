"""Which model instances a task takes: its annotations and a setting say, not a row."""

from __future__ import annotations

from typing import Any, Literal, Optional, Union

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Model

from steady_queue_core import arguments, task
from steady_queue_core.arguments import DeserializationError, ModelReference, TaskArgumentError
from steady_queue_core.backend_options import BackendOptions
from steady_queue_core.tasks.model_arguments import (
    require_permitted_models,
    require_storable_models,
)

from ..app.models import Item, NamedItem


@task
def take(
    user: User,
    number: int = 0,
    anything: Any = None,
    unannotated=None,
    optional: Optional[Group] = None,  # noqa: UP045  (this spelling is the case)
    several: list[Union[User, int]] | None = None,  # noqa: UP007
    mapping: dict[str, Group] | None = None,
    bare: list | None = None,  # type: ignore[type-arg]
    literal: Literal["a"] = "a",
    item: Item | None = None,
    named_item: NamedItem | None = None,
    model: Model | None = None,
    *many: Group,
    **named: User,
) -> None:
    """Take model instances."""


@task(takes_context=True)
def with_context(context: Any, user: User) -> None:
    """Take one after the context."""


USER, GROUP = ModelReference("auth", "user", 1), ModelReference("auth", "group", 1)
ITEM, NAMED_ITEM = ModelReference("testapp", "item", 1), ModelReference("testapp", "nameditem", 1)
PERMITTED: list[tuple[list[Any], dict[str, Any]]] = [
    ([USER], {}),
    ([USER], {"anything": GROUP, "unannotated": [GROUP], "bare": [GROUP, USER], "model": GROUP}),
    ([USER], {"optional": GROUP, "several": [USER, 7], "mapping": {"a": GROUP}}),
    ([USER], {"item": NAMED_ITEM, "named_item": ITEM, "other": USER}),
    ([7, 7, 7], {}),
    ([ModelReference("no", "model", 1)], {}),
]
REFUSED: list[tuple[list[Any], dict[str, Any]]] = [
    ([GROUP], {}),
    ([[GROUP]], {}),
    ([USER, USER], {}),
    ([USER], {"optional": {"a": (USER,)}}),
    ([USER], {"several": [{GROUP}]}),
    ([USER], {"mapping": {"a": USER}}),
    ([USER], {"mapping": {USER: 1}}),
    ([USER], {"literal": USER}),
    ([USER], {"item": GROUP, "named_item": ITEM}),
    ([USER], {"other": GROUP}),
    ([USER, 0, 0, 0, None, None, None, None, "a", None, None, None, USER], {}),
]


@pytest.mark.parametrize(("args", "kwargs"), PERMITTED)
def test_what_the_annotations_allow_is_taken(args: Any, kwargs: Any) -> None:
    require_permitted_models(take, args, kwargs, None)


@pytest.mark.parametrize(("args", "kwargs"), REFUSED)
def test_what_the_annotations_do_not_allow_is_refused(args: Any, kwargs: Any) -> None:
    with pytest.raises(DeserializationError, match="is no model whose instances may be passed as"):
        require_permitted_models(take, args, kwargs, None)


def test_a_list_of_models_closes_what_the_annotations_leave_open() -> None:
    for name in ("anything", "unannotated", "bare", "model"):
        with pytest.raises(DeserializationError, match=f"passed as '{name}' of "):
            require_permitted_models(take, [USER], {name: GROUP}, ["shop.Order"])
        require_permitted_models(take, [USER], {name: GROUP}, ["auth.Group"])
    # A listed model is taken anywhere.
    require_permitted_models(take, [GROUP, GROUP], {}, ["auth.Group"])


def test_the_context_is_no_argument() -> None:
    require_permitted_models(with_context, [USER], {}, None)
    with pytest.raises(DeserializationError, match="'user'"):
        require_permitted_models(with_context, [GROUP], {}, None)


def test_annotations_that_cannot_be_read_leave_it_open() -> None:
    @task_of
    def vague(user: NoSuchName) -> None:  # type: ignore[name-defined]  # noqa: F821
        """Take anything."""

    require_permitted_models(vague, [GROUP], {}, None)
    with pytest.raises(DeserializationError):
        require_permitted_models(vague, [GROUP], {}, [])


def task_of(function: Any) -> Any:
    class Task:
        func, takes_context, module_path = function, False, "tests.vague"

    return Task


@pytest.mark.django_db
def test_a_call_that_no_worker_would_take_is_refused_when_it_is_enqueued() -> None:
    group = Group.objects.create(name="Support")
    with pytest.raises(TaskArgumentError, match="is no model whose instances"):
        take.enqueue(group)
    user = User.objects.create(username="ada")
    assert take.enqueue(user, anything=group).id
    text = arguments.encode_call([Permission.objects.first()], {})
    with pytest.raises(TaskArgumentError):
        require_storable_models(take, text, None)


@pytest.mark.parametrize("value", [["shop"], ["a.b.c"], "shop order", 7, [7]])
def test_labels_are_checked(value: Any) -> None:
    from steady_queue_core.configuration import ConfigurationError

    with pytest.raises(ConfigurationError, match="argument_models"):
        BackendOptions.parse("default", {"argument_models": value})
    options = BackendOptions.parse("default", {"argument_models": "shop.Order, auth.User"})
    assert options.argument_models == ("shop.Order", "auth.User")
