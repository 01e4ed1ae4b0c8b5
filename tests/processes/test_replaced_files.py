"""An SQLite file that is removed or replaced while processes have it open."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import MakeProject
from .harness import Project
from .scenarios import queue, stop_all
from .waiting import wait_for


def beside(path: Path) -> list[Path]:
    """Return a database and the files that belong to it."""
    return [each for each in path.parent.glob(f"{path.name}*") if each.exists()]


def restore(project: Project, path: Path) -> None:
    """Put a copy of the database, as it is, in its place."""
    copy = path.with_name("copy")
    project.query(f"VACUUM INTO '{copy}'")
    for each in beside(path):
        each.unlink()
    os.replace(copy, path)


def migrate_anew(project: Project, path: Path) -> None:
    for each in beside(path):
        each.unlink()
    [supervisor] = project.supervisors
    wait_for(lambda: f"its file {path} is gone" in supervisor.errors(), 20, "a word about it")
    assert not path.exists(), "an empty file in its place would be taken for the database"
    project.migrate()


@pytest.mark.parametrize("change", [restore, migrate_anew])
def test_processes_go_on_with_the_file_that_others_find(
    make_project: MakeProject, change: Callable[[Project, Path], None]
) -> None:
    project = make_project(queue(processes=1))
    path = Path(project.database)
    supervisor = project.start()
    supervisor.wait_ready(1)
    change(project, path)
    later = make_project(
        queue(processes=1),
        extra=f"DATABASES['default']['NAME'] = {str(path)!r}",
        template=None,
    )
    [job] = later.enqueue("work", [0.0])
    wait_for(lambda: project.state_of(job) == "finished", 30, "a job in the new file")
    # Each process notices for itself, and the supervisor may be the last to look.
    back = re.compile(rf" {supervisor.pid} \w+ Database 'default' is available again")
    wait_for(lambda: back.search(supervisor.errors()), 30, "the supervisor in the new file")
    stop_all(project)
    assert not project.query("SELECT 1 FROM steady_queue_processes WHERE pid = ?", supervisor.pid)
