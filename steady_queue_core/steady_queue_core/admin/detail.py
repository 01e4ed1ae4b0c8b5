"""The sections of the page of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fields:
    """Labels and values."""

    title: str
    rows: Sequence[tuple[str, Any]]
    kind = "fields"

    @property
    def filled(self) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in self.rows if value not in ("", None)]


@dataclass(frozen=True)
class Table:
    """Rows under headings, followed by ``note``; without rows, the note alone."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    kind = "table"


@dataclass(frozen=True)
class Text:
    """Preformatted text in parts. A part with a heading can be collapsed."""

    title: str
    parts: Sequence[tuple[str, str]]
    note: str = ""
    kind = "text"


Section = Fields | Table | Text
