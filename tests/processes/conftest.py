"""Projects for the fault tests: one template database, copied for each of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..servers.breakable import BreakableServer
from ..servers.kinds import KINDS
from ..servers.programs import NotFound
from .harness import Project
from .plant import Plant

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


class _ServerTemplates(dict[str, str]):
    """Names of migrated databases, by the alias of their server; each is made when first wanted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.projects: list[Project] = []

    def __missing__(self, alias: str) -> str:
        project = Project(self._folder / alias, None, {}, server=KINDS[alias].given())
        self.projects.append(project)
        self[alias] = project.storage.address.name
        return self[alias]


@pytest.fixture(scope="session")
def server_templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Migrated databases on the servers."""
    templates = _ServerTemplates(tmp_path_factory.mktemp("templates"))
    yield templates
    for project in templates.projects:
        project.close()


@pytest.fixture
def make_project(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    template: Path,
    server_templates: dict[str, str],
) -> Iterator[MakeProject]:
    """Make projects with a ``STEADY_QUEUE`` of their own; kill their processes in the end.

    ``on``: the alias of a server that shall hold the project's database, or ``at``: its address;
    else it is a file. ``files``: what stands in its folder, by name.
    """
    made: list[Project] = []
    is_fresh = request.node.get_closest_marker("fresh") is not None

    def make(queue: dict[str, Any] | None = None, *, extra: str = "", **options: Any) -> Project:
        server = options.get("at")
        source: Path | str | None = template if server is None else None
        if "on" in options:
            server, source = KINDS[options["on"]].given(), server_templates[options["on"]]
        source = options.get("template", source)
        folder, files = tmp_path / str(len(made)), options.get("files")
        made.append(
            Project(
                folder, source, queue or {}, extra, server=server, files=files, is_fresh=is_fresh
            )
        )
        return made[-1]

    yield make
    for project in made:
        project.close()


@pytest.fixture(scope="session")
def breakable_servers() -> Iterator[dict[str, BreakableServer]]:
    """Servers that tests may break, by alias; each starts when it is first wanted."""
    servers = _Breakables()
    yield servers
    for server in servers.values():
        server.close()


class _Breakables(dict[str, BreakableServer]):
    def __missing__(self, alias: str) -> BreakableServer:
        try:
            self[alias] = BreakableServer(KINDS[alias].find())
        except NotFound as error:
            # An address may be given for a server that nothing here could start and break.
            pytest.skip(str(error))
        return self[alias]


#: Of a supervisor, where a merge needs one.
MODES = ["fork", pytest.param("async", marks=pytest.mark.thorough)]
EACH_SERVER = [pytest.param(alias, marks=pytest.mark.server(alias)) for alias in KINDS]
#: What ``make_project`` takes for a project on each of the databases.
EVERYWHERE = [
    pytest.param({}, id="sqlite"),
    *(pytest.param({"on": alias}, marks=pytest.mark.server(alias), id=alias) for alias in KINDS),
]


@pytest.fixture(scope="module", params=EACH_SERVER)
def running_plant(
    request: pytest.FixtureRequest,
    breakable_servers: dict[str, BreakableServer],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Plant]:
    """A project on each of them, at work during all tests of a module, and no longer: its short
    leases keep it busy."""
    made = Plant(breakable_servers[request.param], tmp_path_factory.mktemp(request.param))
    yield made
    made.close()


@pytest.fixture
def plant(running_plant: Plant) -> Iterator[Plant]:
    """The same, in order, and with nothing said yet."""
    running_plant.wait_calm()
    running_plant.said()
    yield running_plant
    running_plant.server.restore()
