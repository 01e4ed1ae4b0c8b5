"""Processes of the last release work on while `migrate` runs, and together with those of the new
code: nothing is lost, runs twice or fails."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steady_queue_core import migrations

from ..older_code import FIRST_UNRELEASED, OlderCode
from ..servers.kinds import KINDS
from ..servers.programs import NotFound
from .conftest import EVERYWHERE
from .harness import Client, Project
from .scenarios import durations, queue, stop_all, verdict
from .waiting import wait_for

#: Jobs of one call, seconds that one takes at most, and jobs that have to start in each phase.
BULK, LONGEST, SHARE = 10, 0.03, 100

OLDER_MIGRATIONS = [
    path.stem
    for path in Path(migrations.__path__[0]).glob("[0-9]*.py")
    if path.stem < FIRST_UNRELEASED
]


class UpgradedProject(Project):
    """A project whose processes start with the older code until it is taken away."""

    code: OlderCode | None = None

    def environment(self) -> dict[str, str]:
        found = super().environment()
        if self.code is not None:
            paths = [str(self.code.folder), *self.code.packages, found["PYTHONPATH"]]
            found["PYTHONPATH"] = os.pathsep.join(paths)
        return found


MakeOld = Callable[[dict[str, Any]], UpgradedProject]


@pytest.fixture(scope="session")
def older_code(tmp_path_factory: pytest.TempPathFactory) -> OlderCode:
    try:
        return OlderCode(tmp_path_factory.mktemp("older") / "code")
    except NotFound as error:
        pytest.skip(str(error))  # A source archive has no history.


@pytest.fixture
def make_old(tmp_path: Path, older_code: OlderCode) -> Iterator[MakeOld]:
    """Make a project with the schema and the code of the last release."""
    made: list[Project] = []

    class Made(UpgradedProject):
        code = older_code

    def make(where: dict[str, Any]) -> UpgradedProject:
        server = KINDS[where["on"]].given() if where else None
        project = Made(tmp_path / "project", None, queue(processes=2), server=server, is_fresh=True)
        made.append(project)
        if server is None:
            project.migrate()
        return project

    yield make
    for project in made:
        project.close()


class Load:
    """A client that enqueues until it is told to end."""

    def __init__(self, project: Project) -> None:
        self.ids: list[int] = []
        self.error = ""
        self._client: Client = project.new_client()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> list[int]:
        self._is_over.set()
        self._thread.join()
        self._client.close()
        assert not self.error
        return self.ids

    def _run(self) -> None:
        try:
            while not self._is_over.wait(0.05):
                calls = durations(BULK, LONGEST)
                self.ids += self._client.call("enqueue", task="work", calls=calls)
        except AssertionError as error:
            self.error = str(error)


@pytest.mark.parametrize("where", EVERYWHERE)
@pytest.mark.thorough
def test_older_processes_work_while_the_schema_changes(
    make_old: MakeOld, where: dict[str, Any]
) -> None:
    project = make_old(where)
    assert migrations_of(project) == len(OLDER_MIGRATIONS)
    older = project.start()
    older.wait_ready(2)
    loads = [Load(project)]
    wait_more(project)

    project.code = None
    project.migrate()
    assert migrations_of(project) > len(OLDER_MIGRATIONS)
    wait_more(project)

    newer = project.start()
    newer.wait_ready(2)
    loads.append(Load(project))
    wait_more(project)

    project.enqueued += loads[0].end()
    assert older.stop() == 0
    wait_more(project)
    project.enqueued += loads[1].end()
    project.wait_done(60)
    stop_all(project)
    assert verdict(project) == []


def migrations_of(project: Project) -> int:
    [(count,)] = project.query("SELECT count(*) FROM django_migrations WHERE app = 'steady_queue'")
    return int(count)


def wait_more(project: Project) -> None:
    """Wait until more jobs have started."""
    before = len(project.attempts())
    wait_for(lambda: len(project.attempts()) >= before + SHARE, 60, f"{SHARE} starts")
