"""Why a value of some type cannot be stored, and what to pass instead."""

from __future__ import annotations

from dataclasses import is_dataclass
from enum import Enum
from functools import partial
from pathlib import PurePath
from types import (
    BuiltinFunctionType,
    CoroutineType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any, Final

from .paths import quoted, type_name

STORABLE: Final = (
    "None, bool, int, float, str, bytes, list, tuple, dict, set, frozenset, datetime, date, "
    "time, timedelta, Decimal, UUID, a saved model instance"
)

_CHOOSE_INSIDE = "Pass the data it works on and choose the function inside the task."
_AS_LIST = "Pass list(...) of it."
_PLAIN = "Pass the few plain values of it that the task needs."

_REMEDIES: Final[dict[type, str]] = {
    FunctionType: _CHOOSE_INSIDE,
    BuiltinFunctionType: _CHOOSE_INSIDE,
    MethodType: _CHOOSE_INSIDE,
    partial: _CHOOSE_INSIDE,
    type: "Pass its name and choose the class inside the task.",
    ModuleType: "Import it inside the task.",
    CoroutineType: "Await it first and pass its result.",
    Enum: "Pass its .value or its .name.",
    PurePath: "Pass str(...) of it.",
    bytearray: "Pass bytes(...) of it.",
    memoryview: "Pass bytes(...) of it.",
    complex: "Pass its real and imaginary parts.",
    range: _AS_LIST,
}

#: The same by name, so that nothing is imported for the sake of a message.
_NAMED_REMEDIES: Final[dict[str, str]] = {
    "_io._IOBase": "Pass its path, or its content as str or bytes.",
    "django.contrib.auth.models.AnonymousUser": "It stands for nobody, and has no row: pass "
    "request.user.pk, which is None for it, and decide inside the task.",
    "django.core.files.base.File": "Pass its name and open it inside the task.",
    "django.db.models.manager.BaseManager": "Run the query inside the task.",
    "django.db.models.query.QuerySet": "Pass a list of primary keys, or list(...) of it.",
    "django.http.request.HttpRequest": _PLAIN,
    "django.http.response.HttpResponseBase": _PLAIN,
    "django.utils.functional.LazyObject": "Pass what is behind it. For request.user pass "
    "request.user.pk, which is None while nobody is logged in.",
    "django.utils.functional.Promise": "Pass str(...) of it.",
}


def unsupported(value: object) -> str:
    """Return the reason and the remedy for a ``value`` of a type that cannot be stored.

    Looks at its type alone: no method of ``value`` is called, its ``repr`` least of all.
    """
    kind = type(value)
    return (
        f"{_described(value)} is not one of the types a task argument may have ({STORABLE}). "
        f"{_remedy(kind)}"
    )


def _described(value: Any) -> str:
    kind = type(value)
    if kind is FunctionType:
        return f"a function ({quoted(value.__name__)})"
    if issubclass(kind, type):
        return f"a class ({quoted(value.__qualname__)})"
    return f"a value of type {type_name(kind)}"


def _remedy(kind: type) -> str:
    for base in kind.__mro__:
        remedy = _REMEDIES.get(base) or _NAMED_REMEDIES.get(
            f"{base.__module__}.{base.__qualname__}"
        )
        if remedy:
            return remedy
    if is_dataclass(kind):
        return "Pass dataclasses.asdict(...) of it, or its fields."
    if hasattr(kind, "__next__") or hasattr(kind, "__iter__"):
        return _AS_LIST
    return _PLAIN
