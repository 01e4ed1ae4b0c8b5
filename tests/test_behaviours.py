"""The list of behaviours names tests that exist, and the databases on which they run."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from .documents import headings, page

HERE = Path(__file__).resolve().parent
SUITE = HERE.parent / "steady_queue_core/steady_queue_core/dialects/conformance"
PLACES = ("all four", "servers", "SQLite", "none")
#: How a test says that it runs on several databases.
EVERYWHERE = re.compile(r"on_every_database|EVERYWHERE|\*EACH_SERVER")
SERVERS = re.compile(r"on_every_server|on_each_server|\bEACH_SERVER\b|\bKINDS\b|: (?:Plant|Line)\b")

ENTRY = re.compile(
    r"^- (?P<what>.+?) \[(?P<where>[^]]+)\]\n(?P<tests>(?:  `[^`]+`\n)+)", re.MULTILINE
)
NAMED = re.compile(r"^  `(?P<path>[\w/]+\.py)::(?P<name>test_\w+)`$", re.MULTILINE)


def text() -> str:
    return (HERE / "behaviours.md").read_text()


@cache
def functions(path: str) -> dict[str, str]:
    """Return what a file has of tests, each with its decorators and arguments."""
    file = SUITE / path.removeprefix("suite/") if path.startswith("suite/") else HERE / path
    found = [
        each
        for each in ast.walk(ast.parse(file.read_text()))
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
    ]
    return {
        each.name: " ".join(map(ast.unparse, [*each.decorator_list, each.args])) for each in found
    }


def places(path: str, name: str) -> set[str]:
    """Return the databases on which a test runs, as far as that can be read from it."""
    said = functions(path)[name]
    if path.startswith("suite/") or EVERYWHERE.search(said):
        return {"all four"}
    if SERVERS.search(said):
        return {"servers"}
    return {"SQLite", "none"}


ENTRIES = [pytest.param(entry, id=entry["what"]) for entry in ENTRY.finditer(text())]


def test_every_item_of_the_list_is_understood() -> None:
    lines = text().splitlines()
    assert len(ENTRIES) == sum(line.startswith("- ") for line in lines) > 100
    assert sum("::" in line for line in lines) == len(NAMED.findall(text()))


@pytest.mark.parametrize("entry", ENTRIES)
def test_its_tests_exist_and_run_where_it_says(entry: re.Match[str]) -> None:
    named = NAMED.findall(entry["tests"])
    assert [test for test in named if test[1] not in functions(test[0])] == []
    found = set().union(*(places(*test) for test in named))
    if "all four" in found or found == {"servers", "SQLite", "none"}:
        found = {"all four"}
    assert entry["where"] in PLACES
    assert entry["where"] in found


def test_what_differs_is_documented_where_it_says() -> None:
    said = re.findall(r"`docs/(\w+\.md)`(?:, ([A-Z][^);]+))?", " ".join(text().split()))
    assert len(said) > 20
    for name, heading in said:
        assert not heading or heading in headings(page(name)), (name, heading)
