"""The shard key that a task declares for its calls, in place of the one of its backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..call_keys import Key, text_of
from ..compat import Task
from .key_options import checked_key_option

OPTION = "shard_key"


def checked_shard_key(key: object, where: str = "") -> Key:
    """Return the option of a task, or of a call if there is ``where``, which takes more.

    Raises ``InvalidTask``.
    """
    return checked_key_option(OPTION, key, where, none="")


def declared_shard_key(task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Return the shard key of a call as ``task`` declares it; ``None``: it declares none.

    Raises ``InvalidTask`` if it could not be computed.
    """
    key: Key | None = getattr(task, OPTION, None)
    if key is None:
        return None
    return text_of(key, args, kwargs, where_of(task), none="", option=OPTION)


def where_of(task: Task) -> str:
    """Return how messages begin that are about the key of a call of ``task``."""
    return f"The shard key of {task.module_path}"
