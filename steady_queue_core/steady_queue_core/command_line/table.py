"""Tables of plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from unicodedata import east_asian_width

from ..printable import printable


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a table whose columns are as wide as what is in them, two spaces apart.
    Columns of numbers alone are aligned to the right."""
    cells = [list(headings), *([printable(str(cell)) for cell in row] for row in rows)]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(width, column)) for column in columns]
    right = [len(column) > 1 and all(map(_is_number, column[1:])) for column in columns]
    for line in cells:
        aligned = map(_aligned, line, widths, right)
        yield "  ".join(aligned).rstrip()


def tables(
    titles: Iterable[tuple[str, list[str]]],
    headings: Sequence[str],
    rows: Mapping[str, Sequence[Sequence[object]]],
    none: str,
) -> Iterator[str]:
    """Yield the lines of a table for each database. ``titles``: the databases, each with the lines
    above its table, if there are several; ``none``: the line in place of a table without rows."""
    for using, title in titles:
        yield from title
        if rows[using]:
            yield from table(headings, rows[using])
        else:
            yield none


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(2 if east_asian_width(each) in "WF" else 1 for each in text)


def _aligned(text: str, columns: int, right: bool) -> str:
    gap = " " * (columns - width(text))
    return gap + text if right else text + gap


def _is_number(text: str) -> bool:
    return text in ("", "?") or text.rstrip("+").replace(",", "").isdigit()
