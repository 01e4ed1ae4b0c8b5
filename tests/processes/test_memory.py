"""Memory that the processes of a supervisor share: what they have copied, and what they import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import MakeProject
from .scenarios import queue, stop_all

pytestmark = pytest.mark.fresh
ROLLUP = Path("/proc/self/smaps_rollup")

#: Writes down what a worker has imported that its supervisor had not, all that it has imported, and
#: what a full garbage collection copies.
NOTES = """
import gc, json, sys
from pathlib import Path
from steady_queue_core.hooks import on_start, on_worker_stop

imported = set()

def own_memory():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:"))

@on_start
def remember(process):
    imported.update(sys.modules)

@on_worker_stop
def note(process):
    own_memory()
    before = own_memory()
    gc.collect()
    notes = {
        "copied": own_memory() - before,
        "late": sorted(set(sys.modules) - imported),
        "modules": sorted(sys.modules),
    }
    Path(__file__).with_name("notes.json").write_text(json.dumps(notes))
"""

#: Modules that a worker needs only for what this project has not: schedules, an admin, coroutines,
#: another database.
NEEDLESS = {
    "croniter",
    "dateutil",
    "django.test",
    "mysql",
    "MySQLdb",
    "psycopg",
    "steady_queue_core.admin",
    "unittest",
}


@pytest.fixture
def notes(make_project: MakeProject) -> dict[str, Any]:
    """What a worker has written down after its first job."""
    project = make_project(queue(processes=1, task_modules=["notes"]), files={"notes.py": NOTES})
    project.start().wait_ready(1)
    project.enqueue("work")
    project.wait_done(20)
    stop_all(project)
    found: dict[str, Any] = json.loads((project.folder / "notes.json").read_text())
    return found


def test_a_worker_imports_no_module_that_it_does_not_need(notes: dict[str, Any]) -> None:
    assert NEEDLESS & set(notes["modules"]) == set()


def test_a_worker_finds_every_module_that_it_needs_in_the_memory_that_it_shares(
    notes: dict[str, Any],
) -> None:
    assert notes["late"] == []


@pytest.mark.skipif(not ROLLUP.exists(), reason="only Linux says which memory is a process's own")
def test_a_garbage_collection_in_a_worker_copies_no_memory_of_its_supervisor(
    notes: dict[str, Any],
) -> None:
    # Kilobytes. It was more than 15,000 while the collector looked at what the supervisor had made.
    assert notes["copied"] < 4_000
