"""Options that are fields of a dataclass, each declared once: its default, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from typing import Any

from .reader import Reader

#: Returns the value of an option, by its name. Records what is wrong with it.
Read = Callable[[Reader, str], Any]


def option(default: Any, read: Read) -> Any:
    """Declare a field that ``read`` reads from the settings."""
    return field(default=default, metadata={"read": read})


def reads_of(options: type[Any]) -> dict[str, Read]:
    """Return how each option of a dataclass is read, by its name."""
    return {each.name: each.metadata["read"] for each in fields(options) if each.metadata}


def integer(least: int, most: int) -> Read:
    """Read a whole number."""
    return lambda reader, name: reader.integer(name, least=least, most=most)


def flag(reader: Reader, name: str) -> bool:
    """Read ``True`` or ``False``."""
    return reader.flag(name)


def duration(reader: Reader, name: str) -> Any:
    """Read a duration above zero."""
    return reader.duration(name)


def duration_or_zero(reader: Reader, name: str) -> Any:
    """Read a duration that may be zero."""
    return reader.duration(name, zero=True)


def optional(read: Read) -> Read:
    """Read what may be missing: ``None`` then."""
    return lambda reader, name: read(reader, name) if reader.given(name) else None
