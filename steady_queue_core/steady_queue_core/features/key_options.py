"""Checks the keys that tasks and calls declare by name, such as ``fair_key``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from django.db.models import Model

from ..compat import InvalidTask, Task
from ..configuration.errors import describe
from .keys import Key, text_of_value
from .task_field import TaskField

#: The key of one call, as ``using()`` takes it.
CallKey = str | int | UUID | Model
#: That, or what computes it.
CallKeyOption = CallKey | Callable[..., object]


def key_field(option: str, none: str) -> TaskField:
    """Return the field of a task for such a key; ``none`` says what a key of ``None`` means; empty:
    there has to be one."""

    def of_task(key: Any) -> Key:
        return checked_key_option(option, key, "", none)

    def of_call(options: Mapping[str, Any], task: Task) -> Key | None:
        key = options.get(option)
        return None if key is None else checked_key_option(option, key, task.module_path, none)

    return TaskField(option, of_task, of_call)


def checked_key_option(option: str, key: object, where: str, none: str) -> Key:
    """Return the key of a task, or of a call if there is ``where``, which takes more. ``none`` says
    what a key of ``None`` means; empty: there has to be one.

    Raises ``InvalidTask``.
    """
    if isinstance(key, str) or callable(key):
        return key
    if where and isinstance(key, int | UUID | Model) and not isinstance(key, bool):
        return text_of_value(key, f"{where}: {option}", none)
    prefix = f"{where}: " if where else ""
    more = ", a number, a UUID, a model instance" if where else ""
    raise InvalidTask(
        f"{prefix}{option} must be a string{more} or a callable of the arguments, not "
        f"{describe(key)}."
    )
