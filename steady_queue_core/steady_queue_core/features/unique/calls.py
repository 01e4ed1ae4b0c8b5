"""The unique key of a call."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from ...arguments import canonical
from ...arguments.signature import signature_of
from ...compat import InvalidTask, Task
from ..calls import NOTHING, Facts
from ..keys import in_group, text_of
from .key import NAME, JobKey
from .options import Unique


def key_of_call(
    task: Task, args: Sequence[Any], kwargs: Mapping[str, Any], text: str
) -> JobKey | None:
    """Return the unique key of a call of ``task``, whose arguments are encoded as ``text``;
    ``None``: it has none.

    Raises ``InvalidTask`` if the key could not be computed.
    """
    unique: Unique | None = getattr(task, "unique", None)
    if unique is None:
        return None
    where = f"The unique key of {task.module_path}"
    if unique.key is None:
        key: str | None = _digest(task, text)
    else:
        key = text_of(unique.key, args, kwargs, where, "a call that need not be unique")
    if key is None:
        return None
    if not key:
        raise InvalidTask(f"{where} is empty; give None for a call that need not be unique.")
    group = task.module_path if unique.group is None else unique.group
    latest = unique.latest or timedelta(0)
    return JobKey(in_group(group, key), unique.until, unique.keep, unique.on_conflict, latest)


def at_call(call: Any, backend: Any) -> Facts:
    """Return the key of a call as its job keeps it. Raises ``InvalidTask``."""
    key = key_of_call(call.task, call.args, call.kwargs, call.arguments)
    return NOTHING if key is None else {NAME: key.stored}


def _digest(task: Task, text: str) -> str:
    """Return a digest that calls with the same arguments share, by position or by name."""
    call = canonical(text)
    args, kwargs = call["args"], call["kwargs"]
    signature = signature_of(task.func, task.takes_context)
    named = (args, kwargs) if signature is None else signature.named(args, kwargs)
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()
