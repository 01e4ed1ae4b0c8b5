"""The sections of the page of a row."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from django.utils.safestring import SafeString

#: A line that begins a frame; those of exception groups are indented by more than two spaces.
FRAME = re.compile(r'([ |]*)File "([^"]*)", line \d+')
INSTALLED = re.compile(r"/(?:site|dist)-packages/([^/]+)")
#: Of any Python, on any host.
STANDARD = re.compile(r"/lib/python3\.\d+/|/[Ll]ib/(?:asyncio|concurrent|threading)|^<frozen ")
REPEATED = "[Previous line repeated"
PYTHON, OURS = "Python", "steady_queue_core"


class Piece(NamedTuple):
    """Some lines of a traceback."""

    text: str
    #: What is shown in their place until they are unfolded; empty: they are not folded.
    summary: str = ""


def pieces_of(traceback: str) -> list[Piece]:
    """Return a traceback in pieces: of the project's own frames and the messages, which are read
    first, and of the frames of libraries, Python and this package, which are folded."""
    found = []
    for is_folded, group in groupby(_blocks(traceback), lambda block: bool(block[1])):
        blocks = [*group]
        text = "\n".join(lines for lines, _ in blocks)
        found.append(Piece(text, _summary([owner for _, owner in blocks]) if is_folded else ""))
    return found


def _blocks(traceback: str) -> Iterator[tuple[str, str]]:
    """Yield the frames and the lines between them, each with the library of a frame."""
    lines: list[str] = []
    owner, depth = "", -1
    for line in traceback.rstrip("\n").split("\n"):
        frame = FRAME.match(line)
        if frame is None and depth >= 0 and _belongs(line, depth):
            lines.append(line)
            continue
        if lines:
            yield "\n".join(lines), owner
        lines = [line]
        owner, depth = (library(frame[2]), len(frame[1])) if frame else ("", -1)
    if lines:
        yield "\n".join(lines), owner


def _belongs(line: str, depth: int) -> bool:
    rest = line[depth:]
    return line[:depth].strip(" |") == "" and (rest[:1] == " " or rest.startswith(REPEATED))


def library(path: str) -> str:
    """Return the library that a file belongs to; nothing for one of the project."""
    path = path.replace("\\", "/")
    installed = INSTALLED.search(path)
    if installed:
        return installed[1].removesuffix(".py")
    if f"/{OURS}/{OURS}/" in path or path.startswith(_PACKAGE):
        return OURS
    return PYTHON if STANDARD.search(path) or path.startswith(_STANDARD) else ""


def _summary(owners: list[str]) -> str:
    names = ", ".join(dict.fromkeys(owners))
    return f"{len(owners)} frame{'' if len(owners) == 1 else 's'} of {names}"


_PACKAGE = f"{Path(__file__).resolve().parents[1]}/"
_STANDARD = f"{sysconfig.get_paths()['stdlib']}/"


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
