"""Arrays as texts, which the driver sends as they are: it would look at each element of a list."""

from __future__ import annotations

from collections.abc import Iterable


def array(elements: Iterable[float | str | None]) -> str:
    """Return the literal of an array. Numbers are written as Python does."""
    return f"{{{','.join(map(_element, elements))}}}"


def _element(value: float | str | None) -> str:
    if value is None:
        return "NULL"
    if not isinstance(value, str):
        return repr(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
