"""A pooler that goes away and comes back, in the middle of statements."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ..postgres.poolers import Pooler, pgbouncer
from ..servers.breakable import BreakableServer
from .conftest import MakeProject
from .harness import Project
from .scenarios import SHORT_LEASE, durations, queue, stop_all, verdict
from .waiting import wait_for

JOBS = 200


@contextmanager
def behind_a_pooler(
    make_project: MakeProject, server: BreakableServer, processes: int
) -> Iterator[tuple[Pooler, Project]]:
    """A project that reaches the server through a pooler."""
    with pgbouncer(server.address.settings()) as pooler:
        changes = {"PORT": pooler.port, "DISABLE_SERVER_SIDE_CURSORS": True}
        options = queue(processes=processes, threads=2, **SHORT_LEASE)
        project = make_project(
            options, extra=f"DATABASES['default'] |= {changes}", at=server.address
        )
        yield pooler, project
        server.thaw()
        stop_all(project)


@pytest.mark.server("postgres")
def test_a_pooler_that_is_killed_is_waited_for(
    make_project: MakeProject, breakable_servers: dict[str, BreakableServer]
) -> None:
    server = breakable_servers["postgres"]
    with behind_a_pooler(make_project, server, processes=2) as (pooler, project):
        supervisor = project.start()
        family = supervisor.wait_ready(2)
        project.enqueue("work", *durations(JOBS, 0.08))
        for share in (1, 2, 3):
            wait_for(lambda share=share: len(project.attempts()) > JOBS // 5 * share, 30, "starts")
            pooler.kill()
            wait_for(
                lambda share=share: supervisor.errors().count("unavailable") >= 2 * share,
                10, "word of it",
            )  # fmt: skip
            pooler.start()
        project.wait_done()
        assert set(supervisor.wait_ready(2)) == set(family)
    assert verdict(project) == []
    assert len(project.attempts()) == JOBS


@pytest.mark.server("postgres")
def test_a_claim_that_takes_place_long_after_its_connection_was_lost_keeps_no_job(
    make_project: MakeProject, breakable_servers: dict[str, BreakableServer]
) -> None:
    """The pooler is gone while a server process, which is frozen, still has the statement."""
    server = breakable_servers["postgres"]
    with behind_a_pooler(make_project, server, processes=1) as (pooler, project):
        supervisor = project.start()
        supervisor.wait_ready(1)
        project.enqueue("work", *[[0.03]] * JOBS)
        wait_for(lambda: len(project.attempts()) > JOBS // 10, 30, "starts")
        server.freeze_sessions(server.sessions(project.storage.address.name))
        wait_for(lambda: is_at_rest(project), 10, "a worker that has run all it has")
        pooler.kill()
        pooler.start()
        known = len(project.attempts())
        wait_for(lambda: len(project.attempts()) > known, 20, "more work")
        server.thaw()
        project.wait_done(30)
    assert verdict(project) == []
    assert len(project.attempts()) == JOBS


def is_at_rest(project: Project) -> bool:
    """Whether no task has run for a while."""
    now = time.monotonic_ns()
    return all(each.ended_at and each.ended_at < now - 2e8 for each in project.attempts())
