"""A supervisor that looks for jobs without a state, all the time, while others move jobs on."""

from __future__ import annotations

from contextlib import closing
from typing import cast

import pytest

from ..servers import client
from ..servers.kinds import KINDS
from .conftest import MakeProject
from .harness import Project, Supervisor
from .scenarios import durations, queue, stop_all, verdict
from .storage import ServerDatabase
from .test_limits import on_every_database
from .waiting import wait_for

JOBS = 300
TOLD = "were in no state"
SCHEMAS = {"postgres": "current_schema()", "mysql": "database()", "mariadb": "database()"}
COLUMNS = (
    "SELECT column_name FROM information_schema.columns "
    "WHERE table_name = 'steady_queue_jobs' AND table_schema = {schema}"
)


def start_under_a_sweep(project: Project, mutant: str) -> Supervisor:
    project.mutant = mutant
    supervisor = project.start()
    supervisor.wait_ready(2)
    return supervisor


def work(project: Project) -> None:
    """Run jobs that are claimed, retried, limited and scheduled."""
    project.enqueue("work", *durations(JOBS // 2, 0.01))
    project.enqueue("in_pairs", *durations(JOBS // 4, 0.01, seed=2))
    project.enqueue("work", *durations(JOBS // 4, 0.01, seed=3), delay=0.5)
    project.wait_done(120)


@on_every_database
def test_no_job_that_is_on_its_way_is_taken_for_one_without_a_state(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(queue(processes=2, threads=2), **where)
    start_under_a_sweep(project, "hasty sweep")
    work(project)
    stop_all(project)
    assert verdict(project) == []
    assert len(project.attempts()) == len(project.enqueued)
    assert not any(TOLD in supervisor.errors() for supervisor in project.supervisors)


def test_a_sweep_that_reads_one_state_after_the_other_takes_jobs_away(
    make_project: MakeProject,
) -> None:
    project = make_project(queue(processes=2, threads=2))
    supervisor = start_under_a_sweep(project, "careless sweep")

    def takes_away() -> bool:
        work(project)
        return TOLD in supervisor.errors()

    wait_for(takes_away, 60, "a job that is taken away")
    stop_all(project)
    assert verdict(project) != []


@on_every_database
def test_jobs_whose_states_were_deleted_run_again_or_fail(
    make_project: MakeProject, where: dict[str, str]
) -> None:
    project = make_project(queue(processes=1, threads=1), **where)
    once, again = project.enqueue("work"), project.enqueue("work_again")
    project.query("DELETE FROM steady_queue_ready_executions")
    project.mutant = "hasty sweep"
    project.start()
    project.wait_done(60)
    stop_all(project)
    jobs = project.snapshot().jobs
    assert [jobs[pk].states for pk in (*once, *again)] == [("failed",), ("finished",)]
    assert jobs[once[0]].error.endswith("StateMissingError")
    assert TOLD in project.supervisors[0].errors()


@pytest.mark.parametrize(
    "server", [pytest.param(alias, marks=pytest.mark.server(alias)) for alias in KINDS]
)
def test_a_job_of_an_open_transaction_is_left_alone(make_project: MakeProject, server: str) -> None:
    """Its row is written, and that of its state is not yet."""
    project = make_project(queue(processes=1, threads=1), on=server)
    [known] = project.enqueue("work")
    project.mutant = "hasty sweep"
    supervisor = project.start()
    project.wait_done(30)
    quote = '"' if server == "postgres" else "`"
    columns = ", ".join(
        f"{quote}{name}{quote}"
        for (name,) in project.query(COLUMNS.format(schema=SCHEMAS[server]))
        if name not in {"id", "finished_at"}
    )
    address = cast(ServerDatabase, project.storage).address
    with (
        closing(client.connect(address, address.name)) as connection,
        closing(connection.cursor()) as cursor,
    ):
        cursor.execute("BEGIN")
        cursor.execute(
            f"INSERT INTO steady_queue_jobs ({columns}) SELECT {columns} FROM steady_queue_jobs "
            f"WHERE id = {known}"
        )
        project.enqueue("work")
        project.wait_done(30)
        cursor.execute("ROLLBACK")
    assert supervisor.stop() == 0
    assert TOLD not in supervisor.errors()
    assert verdict(project) == []
