"""Keeps docs/command-line.md true: its examples are run, and nothing is left out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from steady_queue_core.command_line import parsers, registry, take_over

from .. import documents
from ..models.everywhere import Jobs
from .invoking import invoke
from .shop import Shop

PAGE = documents.page("command-line.md")
PROMPT = "$ manage.py steady_queue "


def test_every_subcommand_has_a_section_with_an_example() -> None:
    sections = ", ".join(documents.headings(PAGE)).split(", ")
    for subcommand in registry.SUBCOMMANDS:
        assert subcommand.name in sections
        has_example = any(command.startswith(subcommand.name) for command, _ in examples())
        assert has_example or f"steady-queue {subcommand.name}" in PAGE.read_text()


def examples() -> Iterator[tuple[str, str]]:
    """Yield each command of the page, with what it prints there."""
    for block in documents.blocks(PAGE, "console"):
        for part in block.split(PROMPT)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def normal(text: str) -> str:
    """Return a text without times, and without what only aligns columns."""
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00| UTC)?", "WHEN", text)
    text = re.sub(r"(?:\d+ (?:ms|s|min|h|d)\b ?)+", "T ", text)
    text = re.sub(r"worker-[0-9a-f]{20}", "worker-NAME", text)
    text = re.sub(r'_s": [\d.]+', '_s": T', text)
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


@pytest.mark.django_db(transaction=True)
def test_the_examples_print_what_is_shown(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.TIME_ZONE = "UTC"
    monkeypatch.setattr(take_over, "connections", ["default"])  # Those of the tests are many.
    Shop(monkeypatch).open()
    for command, shown in examples():
        command, _, status = command.partition("  # exit status ")
        told = invoke(*shlex.split(command))
        assert told.code == int(status or 0), told
        assert normal(told.err + told.out) == normal(shown), command


@pytest.mark.django_db
def test_the_subcommand_shown_works(monkeypatch: pytest.MonkeyPatch) -> None:
    [block] = documents.blocks(PAGE, "python")
    namespace: dict[str, Any] = {}
    exec(block, namespace)
    monkeypatch.setattr(registry, "SUBCOMMANDS", (hosts := namespace["Hosts"](),))
    monkeypatch.setattr(parsers, "SUBCOMMANDS", (hosts,))
    Jobs("default")
    assert invoke("hosts").lines == ["host  database", "here  default"]
    assert invoke("hosts", "--json", "--limit", "0").json["databases"][0]["hosts"] == []
