"""Values that are their own stored form, written without a walk: what most calls pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring_ascii
from math import isfinite
from typing import Any, Final

from . import tags

#: Integers up to this size need no look at their digits.
_LARGEST = 1 << 64
#: Most arguments, and characters of one, that are written before their size is checked.
_MOST, _LONGEST = 100, 10_000
_Writer = Callable[[Any], "str | None"]


def plain_call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Return the text of a call whose arguments are few, short and plain, and ``None`` for any
    other call, which may be one that cannot be stored."""
    positional = _written(args) if len(args) + len(kwargs) <= _MOST else None
    if positional is None:
        return None
    if not kwargs:
        return f'{{"args":[{",".join(positional)}],"kwargs":{{}}}}'
    names = [_name(name) for name in kwargs]
    values = _written(kwargs.values())
    if values is None or None in names:
        return None
    pairs = ",".join(f"{name}:{value}" for name, value in zip(names, values, strict=True))
    return f'{{"args":[{",".join(positional)}],"kwargs":{{{pairs}}}}}'


def _written(values: Iterable[Any]) -> list[str] | None:
    texts = []
    for value in values:
        write = _WRITERS.get(type(value))
        text = None if write is None else write(value)
        if text is None:
            return None
        texts.append(text)
    return texts


def _name(name: Any) -> str | None:
    return _str(name) if type(name) is str and not name.startswith(tags.PREFIX) else None


def _int(value: int) -> str | None:
    return repr(value) if -_LARGEST < value < _LARGEST else None


def _float(value: float) -> str | None:
    return repr(value) if isfinite(value) else None


def _str(value: str) -> str | None:
    if len(value) > _LONGEST or not value.isascii() or "\0" in value:
        return None
    return encode_basestring_ascii(value)


#: By exact type: an instance of a subclass may write itself in another way.
_WRITERS: Final[dict[type, _Writer]] = {
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: _int,
    float: _float,
    str: _str,
}
