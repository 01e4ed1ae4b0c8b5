"""Projects for the fault tests: one template database, copied for each of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..servers.kinds import KINDS
from .harness import Project

MakeProject = Callable[..., Project]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not sys.platform.startswith("linux"):
        for item in items:
            if "make_project" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.skip(reason="looks at processes in /proc"))


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database."""
    project = Project(tmp_path_factory.mktemp("template"), None, {})
    project.migrate()
    return project.database


@pytest.fixture
def make_project(tmp_path: Path, template: Path) -> Iterator[MakeProject]:
    """Make projects with a ``STEADY_QUEUE`` of their own; kill their processes in the end.

    ``on``: the alias of a server that shall hold the project's database; else it is a file.
    """
    made: list[Project] = []

    def make(queue: dict[str, Any] | None = None, *, extra: str = "", **options: Any) -> Project:
        source = options.get("template", template)
        server = KINDS[options["on"]].given() if "on" in options else None
        made.append(Project(tmp_path / str(len(made)), source, queue or {}, extra, server=server))
        return made[-1]

    yield make
    for project in made:
        project.close()
