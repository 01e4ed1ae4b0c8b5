"""Raises what a test asks for: the file ``fault`` has a pattern of the names of places in the code,
and an error. In the folder ``met`` is a file for each place where it was raised."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from fnmatch import fnmatchcase

from django.conf import settings
from django.db import DataError, InterfaceError


class DriverError(BaseException):
    """Stands for what a driver's own code raises outside of DB-API's classes."""


class SilentError(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise SystemExit("no text")

    __repr__ = __str__


ERRORS: dict[str, Callable[[], BaseException]] = {
    "ValueError": lambda: ValueError("on purpose: \N{COLLISION SYMBOL}"),
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "MemoryError": lambda: MemoryError("on purpose"),
    "RecursionError": lambda: RecursionError("on purpose"),
    "OverflowError": lambda: OverflowError("on purpose"),
    "UnicodeEncodeError": lambda: UnicodeEncodeError("ascii", "é", 0, 1, "on purpose"),
    "DataError": lambda: DataError("on purpose"),
    "InterfaceError": lambda: InterfaceError("connection already closed"),
    "DriverError": lambda: DriverError("on purpose"),
    "SilentError": SilentError,
}


def trip(place: str) -> None:
    """Raise the error that is asked for at this place, if there is one."""
    wanted, _, error = (settings.BASE_DIR / "fault").read_text().partition("\n")
    if fnmatchcase(place, wanted):
        (settings.BASE_DIR / "met" / place).touch()
        raised = ERRORS[error]()
        raised.__dict__["was_on_purpose"] = True
        raise raised
