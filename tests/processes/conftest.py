"""Projects for the fault tests: one template database, copied for each of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

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
    migrated = project.manage("migrate", "--run-syncdb", "--verbosity", "0")
    assert migrated.returncode == 0, migrated.stderr
    return project.database


@pytest.fixture
def make_project(tmp_path: Path, template: Path) -> Iterator[MakeProject]:
    """Make projects with a ``STEADY_QUEUE`` of their own; kill their processes in the end."""
    made: list[Project] = []

    def make(queue: dict[str, Any] | None = None, *, extra: str = "", **options: Any) -> Project:
        source = options.get("template", template)
        made.append(Project(tmp_path / str(len(made)), source, queue or {}, extra))
        return made[-1]

    yield make
    for project in made:
        project.close()
