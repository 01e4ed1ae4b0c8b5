"""Breaks SQL into lines: clauses below each other, and what is in parentheses indented."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

WIDTH = 96
TOKEN = re.compile(r"""(\s*)('(?:[^']|'')*'|"[^"]*"|`[^`]*`|%\(\w+\)s|[(),]|[^\s(),'"`]+)""")
#: Words that begin a clause, unless the word before or after says otherwise.
CLAUSES = {
    "SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "FROM", "WHERE", "SET", "VALUES", "RETURNING",
    "JOIN", "LEFT", "CROSS", "FULL", "UNION", "GROUP", "ORDER", "LIMIT", "FOR", "ON",
}  # fmt: skip
AFTER = {
    "JOIN": {"CROSS", "LEFT", "FULL", "INNER"},
    "UPDATE": {"DO", "KEY", "FOR"},
    "FROM": {"DELETE", "DISTINCT"},
}
BEFORE = {"ON": {"CONFLICT", "DUPLICATE"}, "FOR": {"UPDATE", "SHARE"}}


class Word(NamedTuple):
    text: str
    #: Whether a blank comes before it.
    spaced: bool

    def flat(self) -> str:
        return self.text


class Group(NamedTuple):
    """What stands in parentheses."""

    items: Sequence[Item]
    spaced: bool

    def flat(self) -> str:
        return f"({_flat(self.items)})"


Item: TypeAlias = "Word | Group"


def pretty(sql: str) -> str:
    """Return ``sql`` on as many lines as it takes."""
    items = list(_parsed(TOKEN.finditer(sql.strip())))
    return "\n".join(_lines(items, 0))


def _parsed(tokens: Iterator[re.Match[str]]) -> Iterator[Item]:
    for token in tokens:
        if token[2] == ")":
            return
        if token[2] == "(":
            yield Group(list(_parsed(tokens)), bool(token[1]))
        else:
            yield Word(token[2], bool(token[1]))


def _flat(items: Sequence[Item]) -> str:
    return "".join(" " * item.spaced + item.flat() for item in items).strip()


def _fits(items: Sequence[Item], indent: int) -> bool:
    return indent + len(_flat(items)) <= WIDTH


def _lines(items: Sequence[Item], indent: int) -> Iterator[str]:
    if _fits(items, indent):
        yield " " * indent + _flat(items)
        return
    for clause in _clauses(items):
        if _fits(clause, indent):
            yield " " * indent + _flat(clause)
            continue
        first, *others = _parts(clause)
        # The expressions of WITH are on a level with what follows them; others are indented.
        further = 2 if first[0].flat() in CLAUSES - {"WITH"} else 0
        yield from _expanded(first, indent)
        for part in others:
            yield from _expanded(part, indent + further)


def _clauses(items: Sequence[Item]) -> Iterator[list[Item]]:
    clause: list[Item] = []
    texts = ["", *(item.flat() for item in items), ""]
    for before, item, after in zip(texts, items, texts[2:], strict=False):
        text = item.flat()
        begins = text in CLAUSES and before not in AFTER.get(text, ())
        if clause and begins and after in BEFORE.get(text, {after}) and after != "ORDINALITY":
            yield clause
            clause = []
        clause.append(item)
    yield clause


def _parts(clause: Sequence[Item]) -> Iterator[list[Item]]:
    """Split a clause before AND, and after those commas where a line is full."""
    line: list[Item] = []
    part: list[Item] = []
    for number, item in enumerate(clause, 1):
        if item.flat() == "AND":
            yield line + part
            line, part = [], []
        part.append(item)
        if item.flat() != "," and number < len(clause):
            continue
        if line and not _fits([*line, *part], 8):
            yield line
            line = []
        line, part = [*line, *part], []
    yield line


def _expanded(part: Sequence[Item], indent: int) -> Iterator[str]:
    """Break a part of a clause at those of its parentheses that do not fit."""
    line = " " * indent
    for number, item in enumerate(part):
        space = " " * (item.spaced and number > 0)
        rest = _flat(part[number:])
        if isinstance(item, Group) and len(line) + len(rest) > WIDTH and len(item.flat()) > 40:
            yield f"{line}{space}("
            yield from _lines(item.items, indent + 2)
            line = f"{' ' * indent})"
        else:
            line += space + item.flat()
    yield line
