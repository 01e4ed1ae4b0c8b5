"""Where in the arguments a value stands, as its author would write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

#: Steps shown of a long path: so many from its start, so many from its end.
_HEAD, _TAIL = 8, 4
_LONGEST_TEXT = 60


class Step:
    """A step that is not a subscript, such as the primary key of an instance."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


ELEMENT: Final = Step("{element}")
PRIMARY_KEY: Final = Step(".pk")


def render(root: str, steps: Sequence[object]) -> str:
    """Write ``root`` and ``steps`` as an expression: ``args[0]['x']``.

    Never calls a method of a user's key, and stays short whatever the keys hold.
    """
    shown = [_subscript(step) for step in steps[:_HEAD]]
    if len(steps) > _HEAD + _TAIL:
        shown.append("...")
    shown += [_subscript(step) for step in steps[max(_HEAD, len(steps) - _TAIL) :]]
    return root + "".join(shown)


def quoted(text: str) -> str:
    """Return ``text`` in quotes, with control characters escaped and the rest cut off."""
    plain = str.__str__(text)
    if len(plain) > _LONGEST_TEXT:
        plain = plain[:_LONGEST_TEXT] + "..."
    return ascii(plain)


def type_name(kind: type) -> str:
    """Return the name of ``kind`` as a user knows it, cut to a readable length."""
    return str(kind.__qualname__)[:_LONGEST_TEXT]


def _subscript(step: Any) -> str:
    kind = type(step)
    if kind is Step:
        return str(step.text)
    if issubclass(kind, str):
        return f"[{quoted(step)}]"
    if kind is int and step.bit_length() <= 64:
        return f"[{step}]"
    return f"[<{type_name(kind)}>]"
