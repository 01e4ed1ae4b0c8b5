"""Restricts the models whose instances a task accepts as arguments.

References to instances are stored in the database. Write access to it must not give a choice of
the rows that a worker reads elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from functools import lru_cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin
from uuid import UUID

from django.apps import apps
from django.db.models import Model

from ..arguments import (
    DeserializationError,
    ModelReference,
    TaskArgumentError,
    decode_call,
    has_models,
)
from ..arguments.signature import read_hints, read_signature
from ..compat import Task

#: Types of parameters that accept no model instance.
PLAIN = (NoneType, bool, int, float, str, bytes, date, time, timedelta, Decimal, UUID)


def require_permitted_models(
    task: Task,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    listed: Collection[str] | None,
    error: type[Exception] = DeserializationError,
) -> None:
    """Raise ``error`` if the arguments of a call contain a reference that is not allowed.

    A parameter accepts instances of the models in its annotation and of the ``listed`` models. If
    its annotation names no types, it accepts instances of the ``listed`` models, or of any model
    if ``listed`` is ``None``.
    """
    for name, value in _by_parameter(task, args, kwargs):
        for reference in _references_in(value):
            if not _is_permitted(reference, _models_of(task.func, name), listed):
                raise error(
                    f"{reference} is no model whose instances may be passed as {name!r} of "
                    f"{task.module_path}. Name it in the annotation of the parameter, or in "
                    "OPTIONS['argument_models']."
                )


def _is_permitted(
    reference: ModelReference,
    annotated: frozenset[type[Model]] | None,
    listed: Collection[str] | None,
) -> bool:
    label = f"{reference.app_label}.{reference.model}".lower()
    if listed is not None and label in {each.lower() for each in listed}:
        return True
    if annotated is None:
        return listed is None
    try:
        model = apps.get_model(reference.app_label, reference.model)
    except (LookupError, ValueError):
        return True  # The model does not exist: fetching the instance fails anyway.
    # A proxy shares the table of its concrete model.
    table = model._meta.concrete_model
    return any(issubclass(model, each) or each._meta.concrete_model is table for each in annotated)


def _by_parameter(
    task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    try:
        signature = read_signature(task.func)
        bound = signature.bind(*[None] * bool(task.takes_context), *args, **kwargs)
    except (TypeError, ValueError):
        # The function does not accept the arguments: it will not run.
        yield from (("", each) for each in (*args, *kwargs.values()))
        return
    yield from bound.arguments.items()


def _references_in(value: Any) -> Iterator[ModelReference]:
    if isinstance(value, ModelReference):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _references_in(key)
            yield from _references_in(each)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for each in value:
            yield from _references_in(each)


@lru_cache(maxsize=10_000)
def _models_of(function: Any, name: str) -> frozenset[type[Model]] | None:
    """Return the models in a parameter's annotation, or ``None`` if it does not restrict them."""
    try:
        hint = read_hints(function)[name]
    except Exception:  # No annotation, or one that only type checkers can resolve.
        return None
    return _models_in(hint)


def _models_in(hint: Any) -> frozenset[type[Model]] | None:
    if isinstance(hint, type) and get_origin(hint) is None:
        if issubclass(hint, Model):
            return None if hint is Model else frozenset({hint})
        return frozenset() if issubclass(hint, PLAIN) else None
    if get_origin(hint) is Literal:
        return frozenset()
    parts = [_models_in(each) for each in get_args(hint) if each is not ...]
    found = [each for each in parts if each is not None]
    return frozenset().union(*found) if parts and len(found) == len(parts) else None


def require_storable_models(task: Task, text: str, listed: Collection[str] | None) -> None:
    """Raise ``TaskArgumentError`` for a call that the worker would refuse."""
    if has_models(text):
        args, kwargs = decode_call(text, resolve_models=False)
        require_permitted_models(task, args, kwargs, listed, TaskArgumentError)
