"""Outcomes that the database refuses, each for a reason of its own: only their jobs suffer."""

from __future__ import annotations

import time

import pytest

from ..models.refusals import STATEMENTS
from .conftest import EACH_SERVER, EVERYWHERE, MakeProject
from .harness import Project
from .scenarios import queue, stop_all
from .waiting import wait_for

QUEUE = queue(processes=1, threads=3, task_modules=["tests.faultapp.refused"])
#: What makes the connections of a project carry but a part of all characters.
CHARSETS = {
    "postgres": ["latin1"],
    "mysql": ["utf8mb3", "latin1"],
    "mariadb": ["utf8", "latin1"],
}
EXTRA = """
options = DATABASES["default"].setdefault("OPTIONS", {{}})
options["client_encoding" if "postgresql" in DATABASES["default"]["ENGINE"] else "charset"] = {!r}
"""
#: Seconds in which an outcome that was refused is tried again, at least twice.
TRIED_AGAIN = 4
TEXT = "Größe \N{COLLISION SYMBOL}"


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("alias", EACH_SERVER)
def test_text_that_the_connections_of_the_project_cannot_carry_ends_no_other_job(
    alias: str, number: int, make_project: MakeProject
) -> None:
    if number >= len(CHARSETS[alias]):
        pytest.skip("one is enough")
    project = make_project(QUEUE, on=alias, extra=EXTRA.format(CHARSETS[alias][number]))
    supervisor = project.start()
    supervisor.wait_ready(1)
    [failed] = project.enqueue("refused:fail", [TEXT])
    [told] = project.enqueue("refused:tell", [TEXT])
    project.enqueue("work", *[[0.0]] * 5)
    project.wait_done(20)
    stop_all(project)
    assert project.state_of(failed) == "failed"
    assert "unavailable" not in supervisor.errors()
    found = project.query(
        "SELECT message FROM steady_queue_failed_executions WHERE job_id = ?", failed
    )
    assert found == [(TEXT,)]
    assert project.state_of(told) == "finished"
    assert project.query("SELECT text FROM steady_queue_checkpoints") == [(TEXT,)]


def refuse(project: Project, event: str, condition: str) -> None:
    """Let the database refuse what is done to some rows, with an error that tells nothing."""
    scheme = project.storage.address.scheme if project.storage is not project.file else "sqlite"
    statement = STATEMENTS["mysql" if scheme == "mariadb" else scheme]
    project.query(statement.format(event=event, condition=condition.replace("%", "%%")))


@pytest.mark.parametrize("where", EVERYWHERE)
def test_an_outcome_that_is_refused_fails_its_job(
    where: dict[str, str], make_project: MakeProject
) -> None:
    project = make_project(QUEUE, **where)
    refuse(project, "INSERT ON steady_queue_failed_executions", "NEW.message LIKE '%boom%'")
    project.start().wait_ready(1)
    [failed] = project.enqueue("refused:fail", ["boom"])
    project.enqueue("work", *[[0.0]] * 5)
    project.wait_done(20)
    stop_all(project)
    found = project.query(
        "SELECT message FROM steady_queue_failed_executions WHERE job_id = ?", failed
    )
    assert "not this one" in str(found)


@pytest.mark.parametrize("where", EVERYWHERE)
def test_jobs_that_cannot_be_ended_keep_no_others_from_it(
    where: dict[str, str], make_project: MakeProject
) -> None:
    project = make_project(QUEUE, **where)
    # The first is tried again several times, and the second comes while it is.
    [stubborn] = project.enqueue("work", [0.0])
    refuse(project, "UPDATE ON steady_queue_jobs", f"OLD.id IN ({stubborn}, {stubborn + 6})")
    project.start().wait_ready(1)
    project.enqueue("work", *[[0.0]] * 5)
    wait_for(lambda: project.unfinished() == 1, 5, "the end of all others")
    assert project.enqueue("work", [0.0]) == [stubborn + 6]
    end = time.monotonic() + TRIED_AGAIN
    while time.monotonic() < end:
        project.enqueue("work", *[[0.0]] * 5)
        wait_for(lambda: project.unfinished() == 2, 5, "the end of all others")
    project.query(
        "DROP TRIGGER refuse" + (" ON steady_queue_jobs" if where == {"on": "postgres"} else "")
    )
    project.wait_done(30)
    for job in (stubborn, stubborn + 6):
        assert project.state_of(job) == "finished"
        assert len(project.attempts_at(job)) == 1
    stop_all(project)
