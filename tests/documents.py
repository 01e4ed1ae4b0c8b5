"""Reading the Markdown of the project's pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parent.parent
PAGES = (
    WORKSPACE / "README.md",
    *(WORKSPACE / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *sorted((WORKSPACE / "docs").rglob("*.md")),
)

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def page(name: str) -> Path:
    """Return the path of ``README.md`` or ``CONTRIBUTING.md``, or of a page in docs/."""
    return next(path for path in PAGES if path.name == name)


def blocks(path: Path, language: str, heading: str | None = None) -> list[str]:
    """Return the code blocks in ``language``, in their order; ``""`` for those that name none. With
    a ``heading``: those up to the next one."""
    text = path.read_text()
    if heading is not None:
        # Prose has as many lines as the text.
        start, end = (prose(path).count("\n", 0, index) for index in _span(path, heading))
        text = "".join(text.splitlines(keepends=True)[start:end])
    return [code for name, code in FENCE.findall(text) if name == language]


@cache
def prose(path: Path) -> str:
    """Return the text with empty lines where its code blocks are."""
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), path.read_text())


@cache
def headings(path: Path) -> list[str]:
    """Return the texts of the headings."""
    return [text for _, text in HEADING.findall(prose(path))]


def places(pattern: str | re.Pattern[str], path: Path) -> Iterator[tuple[str, re.Match[str]]]:
    """Find a pattern in the text without code blocks; say of each match where it begins."""
    for found in re.finditer(pattern, prose(path)):
        line = 1 + found.string.count("\n", 0, found.start())
        yield f"{path.relative_to(WORKSPACE)}:{line}", found


def section(path: Path, heading: str) -> str:
    """Return what stands between a heading and the next one, without code blocks."""
    start, end = _span(path, heading)
    return prose(path)[start:end]


def _span(path: Path, heading: str) -> tuple[int, int]:
    """Return where the text below a heading begins and ends, in the text without code blocks."""
    text = prose(path)
    [start] = [each for each in HEADING.finditer(text) if each[2] == heading]
    following = HEADING.search(text, start.end())
    return start.end(), following.start() if following else len(text)


def rows(text: str) -> dict[str, list[str]]:
    """Return the cells of a table's rows after the first, by the code in the first."""
    found = {}
    for line in text.splitlines():
        if line.startswith("| `"):
            first, *others = [cell.strip() for cell in line.strip("|").split("|")]
            for name in re.findall(r"`([^`]+)`", first):
                found[name] = others
    return found


def anchor(heading: str) -> str:
    """Return the name under which a heading can be linked to."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
