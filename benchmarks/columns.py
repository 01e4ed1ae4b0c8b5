"""Rows of text as an aligned table."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return the rows, the first of them as a head; words to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(_cells(row, widths)).rstrip() for row in rows]
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)


def _cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.rjust(width) if cell[:1].isdigit() else cell.ljust(width)
        for cell, width in zip(row, widths, strict=True)
    ]
