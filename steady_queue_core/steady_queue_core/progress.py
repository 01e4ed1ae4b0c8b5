"""How far a task says that it has come."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

#: The largest number that is exact in every database.
LARGEST = 2**53
#: Most characters of the text.
LONGEST_TEXT = 200


@dataclass(frozen=True, slots=True)
class Progress:
    """What a task has told last with ``context.progress()``."""

    #: How much is done, of ``total``, in any unit.
    done: float
    #: ``None``: nobody knows how much there is.
    total: float | None = None
    text: str = ""
    #: When it was stored, by the database's clock; ``None`` before.
    updated_at: datetime | None = None

    @classmethod
    def checked(cls, done: object, total: object, text: object) -> Progress:
        """Return what a task tells. Raises ``TypeError`` and ``ValueError``."""
        if not isinstance(text, str):
            raise TypeError(f"progress: text must be a string, not {type(text).__name__}.")
        if len(text) > LONGEST_TEXT:
            raise ValueError(
                f"progress: text has {len(text):,} characters, and at most {LONGEST_TEXT} are "
                "stored. Shorten it, or use checkpoint()."
            )
        if not _is_storable(text):
            raise ValueError("progress: text has a NUL character or half a surrogate pair.")
        return cls(
            _number("done", done),
            None if total is None else _number("total", total, positive=True),
            text,
        )

    @classmethod
    def read(
        cls, done: Any, total: Any, text: Any, updated_at: datetime | None = None
    ) -> Progress | None:
        """Return what is stored, or ``None`` if it is nothing, or damaged."""
        try:
            found = cls.checked(done, total, text)
        except (TypeError, ValueError):
            return None
        return cls(found.done, found.total, found.text, updated_at)

    @property
    def fraction(self) -> float | None:
        """The part that is done, from 0.0 to 1.0; ``None`` without a total."""
        return None if self.total is None else min(self.done / self.total, 1.0)

    @property
    def percent(self) -> int | None:
        """The part that is done in whole percent, rounded down; ``None`` without a total."""
        return None if self.fraction is None else math.floor(self.fraction * 100)

    def __str__(self) -> str:
        told = f"{self.done:,}"
        if self.total is not None:
            told += f" of {self.total:,} ({self.percent}%)"
        return f"{told}: {self.text}" if self.text else told


def _number(name: str, value: object, *, positive: bool = False) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"progress: {name} must be a number, not {type(value).__name__}.")
    # NaN is neither.
    if not 0 <= value <= LARGEST or (positive and not value):
        least = "more than 0 and at most" if positive else "from 0 to"
        raise ValueError(f"progress: {name} must be {least} {LARGEST:,}, not {value!r:.40}.")
    return int(value) if value == int(value) else float(value)


def _is_storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
