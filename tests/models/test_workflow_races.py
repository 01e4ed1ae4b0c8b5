"""Workflows that grow while what the new nodes wait for ends."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections, transaction

from steady_queue_core import Workflow, call, task
from steady_queue_core.batches.workflow import workflow_of
from steady_queue_core.conformance import threads
from steady_queue_core.conformance.base import ending
from steady_queue_core.dialects import Ending
from steady_queue_core.dialects.registry import dialect_for
from steady_queue_core.models import Job, WaitingExecution

from ..core.driver import Driver
from ..sizes import runs
from .everywhere import on_every_database, where_snapshots_are_old
from .recurrence import tasks

PATIENCE = 60


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)


@task
def work(number: int = 0) -> None:
    """Do nothing."""


@on_every_database
def test_node_after_one_that_is_ending_runs(using: str, pytestconfig: pytest.Config) -> None:
    driver = Driver(using)
    for _ in range(runs(pytestconfig, merge=8, whole=30)):
        workflow = Workflow()
        workflow.add(call(work), name="ending")
        workflow.add(call(work), name="open")
        result = workflow.enqueue()
        first, second = driver.claim()
        outcome = ending(Ending.FINISHED, first, attempts=1, link=first.link, return_value="null")

        def settle(outcome: Any = outcome) -> None:
            dialect_for(using).settle(connections[using], [outcome])

        def grow(result: Any = result) -> None:
            running = workflow_of(result.id, result.backend)
            assert running is not None
            running.add(call(work), after="ending")

        threads.run_all(using, [settle, grow, grow], PATIENCE)
        assert WaitingExecution.objects.using(using).count() == 0
        driver.settle(driver.run(second))
        driver.work()
        result.refresh()
        assert (str(result.status), result.total) == ("succeeded", 4)


@where_snapshots_are_old
def test_a_claim_with_an_older_snapshot_knows_that_a_job_is_not_to_run(using: str) -> None:
    """As a claim that has begun a moment before the job was asked to end, and finds it ready."""
    driver = Driver(using)
    workflow = Workflow()
    first = workflow.add(call(work))
    workflow.add(call(work), after=[first])
    result = workflow.enqueue()
    [parent] = driver.claim()
    work.enqueue()  # What the snapshot shows as ready.
    connection: Any = connections[using]
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    failed = ending(Ending.FAILED, parent, attempts=1, errors="[]", link=parent.link)

    def settle() -> None:
        dialect_for(using).settle(connections[using], [failed])

    with transaction.atomic(using=using):
        list(Job.objects.using(using).values_list("pk"))  # The snapshot.
        threads.run_all(using, [settle], PATIENCE)
        [claim] = [each for each in driver.claim() if each.link is not None]
    connection.close()
    assert claim.is_cancelled
    driver.settle(driver.run(claim))
    result.refresh()
    assert str(result.status) == "failed"
