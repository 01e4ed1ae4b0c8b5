"""The fair key of a task, and that of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..call_keys import Key, shortened, text_of
from ..compat import Task
from .key_options import checked_key_option

OPTION = "fair_key"
#: What ``None`` means for a key.
NO_KEY = "a job without a key"


def checked_fair_key(key: object, where: str = "") -> Key:
    """Return the option of a task, or of a call if there is ``where``, which takes more.

    Raises ``InvalidTask``.
    """
    return checked_key_option(OPTION, key, where, NO_KEY)


def fair_key_of_call(task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the fair key of a call of ``task``, as it is stored; of one without a key, ``""``.

    Raises ``InvalidTask`` if it could not be computed.
    """
    key: Key | None = getattr(task, OPTION, None)
    if key is None:
        return ""
    where = f"The fair key of {task.module_path}"
    return shortened(text_of(key, args, kwargs, where, NO_KEY, option=OPTION) or "")
