"""The sections of the page of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from .tracebacks import Piece


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
    #: Other selections of the rows: label, number and URL; no URL for the one that is shown.
    tabs: Sequence[tuple[str, str, str | None]] = ()
    #: Labels and URLs of the pages before and after.
    pages: Sequence[tuple[str, str]] = ()
    kind = "table"


@dataclass(frozen=True)
class Text:
    """Preformatted text in parts. A part with a heading can be collapsed."""

    title: str
    parts: Sequence[tuple[str, str]]
    note: str = ""
    kind = "text"


@dataclass(frozen=True)
class Tracebacks:
    """Tracebacks in pieces, some of which are folded, each with a heading."""

    title: str
    parts: Sequence[tuple[str, Sequence[Piece]]]
    note: str = ""
    kind = "tracebacks"


@dataclass(frozen=True)
class Drawing:
    """A picture, as an SVG element."""

    title: str
    svg: SafeString
    note: str = ""
    kind = "drawing"


Section = Fields | Table | Text | Tracebacks | Drawing
