"""Keys that are computed from the arguments of a call: of limits, and of unique jobs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Model

from ..compat import InvalidTask
from ..project_code import contained
from ..project_code import text_of as said_by
from .storable import LONGEST_KEY, is_storable

Key = str | Callable[..., object]

#: What separates the group from the rest of a key: no group may hold it.
SEPARATOR = "/"


def text_of(
    key: Key,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    where: str,
    none: str,
    option: str = "key",
) -> str | None:
    """Return the key of a call as text; ``None``: it has none.

    Raises ``InvalidTask`` that begins with ``where``. ``none`` says what ``None`` means, and is
    empty if there has to be a key; ``option`` says where the key is given.
    """
    value: object = key
    if callable(key):
        try:
            value = contained(key, *args, **kwargs)
        except Exception as error:
            raise InvalidTask(
                f"{where} could not be computed: {type(error).__name__}: {said_by(error)}. Its "
                f"{option}=... is called with the arguments of the task."
            ) from error
    return None if value is None and none else text_of_value(value, where, none)


def text_of_value(value: object, where: str, none: str = "") -> str:
    """Return a key that is known, or computed, as text; the rest is that of ``text_of()``."""
    if isinstance(value, Model):
        if value.pk is None:
            raise InvalidTask(
                f"{where} is an instance of {value._meta.label} that is not saved: all of these "
                "would have the same key. Save it first."
            )
        value = f"{value._meta.label_lower}{SEPARATOR}{value.pk}"
    if not isinstance(value, str | int | UUID):
        given = "None" if value is None else f"of type {type(value).__name__}"
        last = f"a model instance, or None for {none}" if none else "or a model instance"
        raise InvalidTask(f"{where} is {given}; give a string, a number, a UUID, {last}.")
    text = str(value)
    if not is_storable(text):
        raise InvalidTask(f"{where} has a NUL character or a lone surrogate: {text!r}.")
    return text


def in_group(group: str, key: str) -> str:
    """Return the key of a group as it is stored. A long one is cut off and ends with its hash."""
    return shortened(f"{group}{SEPARATOR}{key}")


def shortened(whole: str) -> str:
    """Return a key as it fits into a column. A long one is cut off and ends with its hash."""
    if len(whole) <= LONGEST_KEY:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()
    return f"{whole[: LONGEST_KEY - len(digest) - 1]}#{digest}"


def checked_group(group: object, where: str) -> str | None:
    """Return a valid group, or ``None``. Raises ``TypeError`` or ``ValueError`` that names
    ``where``."""
    if group is None:
        return None
    if not isinstance(group, str):
        raise TypeError(f"{where}: group must be a string, not {type(group).__name__}")
    if not group or not group.isprintable() or SEPARATOR in group:
        raise ValueError(
            f"{where}: group {group!r} is not valid: give printable text without {SEPARATOR!r}"
        )
    return group
