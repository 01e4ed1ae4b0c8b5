"""Decodes stored text to values."""

from __future__ import annotations

import json
from binascii import a2b_base64
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final, NoReturn
from uuid import UUID

from . import moments, parent_result, references, tags
from .errors import DeserializationError
from .limits import DEEPEST, MOST_ALIKE, PayloadLimits
from .parent_result import ParentResult
from .paths import quoted

_Reader = Callable[[Any], Any]
_Parser = Callable[[str], Any]
ResultOf = Callable[[ParentResult], Any]


def decode(
    text: str,
    *,
    resolve_models: bool = True,
    limits: PayloadLimits | None = None,
    result_of: ResultOf | None = None,
) -> Any:
    """Return the value that :func:`.encode` wrote as ``text``.

    Model instances are read from the database, one query each, or with
    ``resolve_models=False`` left as :class:`.ModelReference`. Results of other jobs are what
    ``result_of`` returns, by default left as :class:`.ParentResult`. With ``limits``, text that is
    larger than these is not read; no text nests deeper than ``DEEPEST``.

    :raises DeserializationError: ``text`` is not ours or too large, or an instance no longer
        exists
    """
    if not isinstance(text, str):
        raise DeserializationError("The stored value is not text.")
    if limits is not None and len(text) > limits.max_bytes:
        raise DeserializationError(
            f"The stored text has {len(text):,} characters; the limit, max_payload_bytes, is "
            f"{limits.max_bytes:,}."
        )
    # Most text has no tag in it and needs no look at its objects.
    if tags.PREFIX not in text:
        parse = _parse_plain
    elif resolve_models:
        parse = _parse_resolving
    else:
        parse = _parse_referring
    if result_of is not None and tags.RESULT in text:
        resolve = _resolved if resolve_models else references.read
        parse = _parser(resolve, lambda stored: result_of(parent_result.read(stored)))
    try:
        value = parse(text)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise DeserializationError(f"The stored text is not proper JSON: {error}.") from None
    if text.count("[") + text.count("{") > DEEPEST and _is_too_deep(value):
        raise _too_deep()
    return value


def decode_call(
    text: str,
    *,
    resolve_models: bool,
    limits: PayloadLimits | None = None,
    result_of: ResultOf | None = None,
) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and the keyword arguments that :func:`.encode_call` wrote.

    :raises DeserializationError: as :func:`decode` does, or ``text`` is not that of a call
    """
    call = decode(text, resolve_models=resolve_models, limits=limits, result_of=result_of)
    if type(call) is dict and len(call) == 2:
        args, kwargs = call.get("args"), call.get("kwargs")
        if (
            type(args) is list
            and type(kwargs) is dict
            and all(type(name) is str for name in kwargs)
        ):
            return args, kwargs
    raise DeserializationError("The stored text is not that of a call's arguments.")


def has_models(text: str) -> bool:
    """Say whether there may be references to model instances in ``text``."""
    return tags.MODEL in text


def has_references(text: str) -> bool:
    """Say whether there may be references to models, or to results of other jobs, in ``text``."""
    return tags.PREFIX in text and (tags.MODEL in text or tags.RESULT in text)


def _too_deep() -> DeserializationError:
    return DeserializationError(f"The stored text is nested more than {DEEPEST} levels deep.")


def _is_too_deep(value: Any) -> bool:
    deepest = DEEPEST + 2  # a call and its list of arguments come on top
    level, depth = [value], 0
    while containers := [item for item in level if type(item) in _CONTAINERS]:
        depth += 1
        if depth > deepest:
            return True
        level = [inner for outer in containers for inner in outer]
        level += [inner for outer in containers if type(outer) is dict for inner in outer.values()]
    return False


def _restore(resolve: _Reader, result: _Reader, data: dict[str, Any]) -> Any:
    """Return the value that ``data``, an object in the text, stands for.

    The parser calls this from the inside out: what is in ``data`` is restored already.
    """
    if len(data) != 1:
        return data
    ((tag, stored),) = data.items()
    if not tag.startswith(tags.PREFIX):
        return data
    if tag == tags.MODEL:
        reader: _Reader | None = resolve
    else:
        reader = result if tag == tags.RESULT else _READERS.get(tag)
    if reader is None:
        raise DeserializationError(f"The stored text has an unknown tag, {quoted(tag)}.")
    try:
        return reader(stored)
    except (TypeError, ValueError, ArithmeticError):
        # The cause would quote the stored value, however long it is.
        raise DeserializationError(
            f"The stored text has no proper value under {quoted(tag)}."
        ) from None


def _resolved(stored: Any) -> Any:
    return references.fetch(references.read(stored))


def _refused_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _items(stored: Any) -> list[Any]:
    if type(stored) is not list:
        raise TypeError("not a list")
    return stored


def _text(stored: Any) -> str:
    if type(stored) is not str:
        raise TypeError("not text")
    return stored


def _dict(stored: Any) -> dict[Any, Any]:
    items = iter(_items(stored))
    pairs = list(zip(items, items, strict=True))
    _require_spread([key for key, _ in pairs])
    return dict(pairs)


def _members(stored: Any) -> list[Any]:
    return _require_spread(_items(stored))


def _require_spread(items: list[Any]) -> list[Any]:
    # Hashes of numbers are predictable: a set compares integers that are multiples of 2**61 - 1
    # apart each with all others, which a tampered row could exploit.
    if len(items) > MOST_ALIKE:
        [(_, alike)] = Counter(map(hash, items)).most_common(1)
        if alike > MOST_ALIKE:
            raise ValueError("too many of one hash")
    return items


def _timedelta(stored: Any) -> timedelta:
    days, seconds, microseconds = _items(stored)
    return timedelta(days, seconds, microseconds)


def _decimal(stored: Any) -> Decimal:
    value = Decimal(_text(stored))
    if not value.is_finite():
        raise ValueError("not finite")
    return value


#: The whole set: a tag that is not here is refused.
_READERS: Final[dict[str, _Reader]] = {
    tags.BYTES: lambda stored: a2b_base64(_text(stored), strict_mode=True),
    tags.DATE: date.fromisoformat,
    tags.DATETIME: partial(moments.read, datetime),
    tags.DECIMAL: _decimal,
    tags.DICT: _dict,
    tags.FROZENSET: lambda stored: frozenset(_members(stored)),
    tags.SET: lambda stored: set(_members(stored)),
    tags.TIME: partial(moments.read, time),
    tags.TIMEDELTA: _timedelta,
    tags.TUPLE: lambda stored: tuple(_items(stored)),
    tags.UUID: lambda stored: UUID(_text(stored)),
}
_CONTAINERS: Final = frozenset({list, tuple, dict, set, frozenset})


def _parser(resolve: _Reader | None, result: _Reader = parent_result.read) -> _Parser:
    hook = partial(_restore, resolve, result) if resolve else None
    return json.JSONDecoder(object_hook=hook, parse_constant=_refused_constant).decode


_parse_plain: Final = _parser(None)
_parse_resolving: Final = _parser(_resolved)
_parse_referring: Final = _parser(references.read)
