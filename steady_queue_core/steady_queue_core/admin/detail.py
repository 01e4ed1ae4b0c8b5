"""The parts of a page about one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    title: str
    rows: Sequence[tuple[str, Any]]
    kind = "facts"

    @property
    def known(self) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in self.rows if value not in ("", None)]


@dataclass(frozen=True)
class Table:
    """Rows under headings; ``note`` stands below, and alone where there are no rows."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    kind = "table"


@dataclass(frozen=True)
class Text:
    """Text as it is; each part may have a heading, and is folded then."""

    title: str
    parts: Sequence[tuple[str, str]]
    note: str = ""
    kind = "text"


Section = Facts | Table | Text
