"""Encodes values as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .encoder import Encoder
from .errors import TaskArgumentError
from .limits import DEFAULT_LIMITS, PayloadLimits
from .plain import plain_call

NULL: Final = "null"
_to_json: Final = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":")
).encode


def encode(value: Any, *, limits: PayloadLimits = DEFAULT_LIMITS, root: str = "value") -> str:
    """Return ``value`` as ASCII JSON text.

    ``root`` is what error messages call the value.

    :raises TaskArgumentError: something in ``value`` cannot be stored, or it is too large
    """
    if value is None and limits.max_bytes >= len(NULL):
        return NULL  # What most tasks return.
    encoder = Encoder(limits, root)
    try:
        text = _to_json(encoder.value(value))
    except RecursionError:
        raise _no_stack_left(root) from None
    encoder.check_size(len(text))
    return text


def encode_call(
    args: Sequence[Any], kwargs: Mapping[str, Any], *, limits: PayloadLimits = DEFAULT_LIMITS
) -> str:
    """Return the arguments of one call as ASCII JSON text.

    Depth is counted for each argument by itself, size for all of them together.

    :raises TaskArgumentError: an argument cannot be stored, or they are too large
    """
    plain = plain_call(args, kwargs)
    if plain is not None and len(plain) <= limits.max_bytes:
        return plain
    encoder = Encoder(limits, "the call")
    try:
        text = _to_json(encoder.call(args, kwargs))
    except RecursionError:
        raise _no_stack_left("the call") from None
    encoder.check_size(len(text))
    return text


def _no_stack_left(root: str) -> TaskArgumentError:
    return TaskArgumentError(
        f"{root} cannot be stored: it is nested more deeply than the interpreter's recursion "
        "limit allows here. Pass a flatter structure."
    )
