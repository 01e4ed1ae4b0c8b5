"""Files of SQL among the examples."""

from __future__ import annotations

from pathlib import Path


def statements_of(path: Path) -> list[str]:
    """Return the statements of a file, without its comments."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("--")]
    return [each for each in map(str.strip, "\n".join(lines).split(";")) if each]
