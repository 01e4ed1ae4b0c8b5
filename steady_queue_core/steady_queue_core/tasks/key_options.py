"""Checks the keys that tasks and calls declare by name, such as ``fair_key``."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Model

from ..call_keys import Key, text_of_value
from ..compat import InvalidTask
from ..configuration.errors import describe


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
