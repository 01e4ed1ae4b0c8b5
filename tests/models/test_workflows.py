"""Chains, groups and workflows: what runs when, and what is passed on, on every database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from steady_queue_core import (
    AlreadyFinished,
    Batch,
    BatchDoesNotExist,
    BatchResult,
    Discard,
    Fail,
    Previous,
    ResultOf,
    Workflow,
    call,
    chain,
    group,
    limits_concurrency,
    task,
)
from steady_queue_core.compat import InvalidTask
from steady_queue_core.dialects.database import Database
from steady_queue_core.models import BatchMember, Dependency, Job, JobBatch, WaitingExecution
from steady_queue_core.models.operations.batch_maintenance import FinishedBatches

from ..core.driver import Driver
from .everywhere import on_every_database
from .recurrence import tasks

ran: list[Any] = []


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)
    ran.clear()


@task(max_attempts=1)
def work(value: Any = None, how: str = "") -> Any:
    ran.append(value)
    if how == "fail":
        raise Fail("no stock")
    if how == "discard":
        raise Discard("nobody wants it")
    return value


moods: list[bool] = []


@task(max_attempts=3)
def moody(value: int) -> int:
    ran.append(value)
    if moods and moods.pop():
        raise LookupError
    return value


@task(max_attempts=1)
def unlucky(value: int) -> int:
    return moody.func(value)


@task
def add(*numbers: Any, more: int = 0) -> Any:
    ran.append(("add", numbers))
    return sum(sum(each) if isinstance(each, list) else each for each in numbers) + more


@task
async def aadd(left: int, right: int) -> int:
    return left + right


@limits_concurrency(key="one", to=1)
@task
def limited(value: int) -> int:
    ran.append(value)
    return value


@task(unique=True)
def once(value: int = 0) -> None:
    """Do nothing."""


@task(takes_context=True)
def grow(context: Any) -> str:
    workflow = context.workflow
    first = workflow.add(call(add, 1), name="grown", after=["fetch"])
    workflow.add(call(add, first.result, 10), name="sum")
    workflow.add(call(work, "never"), after="fetch", run_when="failure")
    workflow.add(group(call(work, 7), call(work, 8)), name="both", after=[first])
    workflow.add(call(add, 1), name="grown")
    return "grown"


def left(using: str) -> int:
    return WaitingExecution.objects.using(using).count()


def finished(using: str, result: BatchResult) -> BatchResult:
    driver = Driver(using)
    driver.work()
    driver.dispatch()
    driver.work()
    result.refresh()
    assert left(using) == 0
    assert result.is_finished
    return result


@on_every_database
def test_chain_runs_one_after_the_other_and_passes_values_on(using: str) -> None:
    steps = call(work, 1), call(add, Previous(), 2), call(aadd, ResultOf(0), right=ResultOf(1))
    result = chain(*steps, description="sums").enqueue()
    assert left(using) == 2
    assert str(result.status) == "running"
    finished(using, result)
    assert result.values() == [1, 3, 4]
    assert (result.kind, result.description, str(result.status)) == ("chain", "sums", "succeeded")
    assert BatchResult.get(result.id).values() == [1, 3, 4]


@on_every_database
def test_failure_ends_a_chain(using: str) -> None:
    result = chain(call(work, 1), call(work, 2, "fail"), call(work, 3), call(work, 4)).enqueue()
    finished(using, result)
    assert ran == [1, 2]
    assert [str(each.status).lower() for each in result.results()] == [
        "successful", "failed", "failed", "failed",
    ]  # fmt: skip
    assert [each.errors[-1].exception_class_path for each in result.results()[2:]] == [
        "steady_queue_core.errors.TaskCancelled"
    ] * 2
    assert str(result.status) == "failed"
    with pytest.raises(ValueError, match="has not succeeded"):
        result.values()


@on_every_database
def test_steps_are_known_by_number_and_keep_their_queues(using: str) -> None:
    mail = work.using(queue_name="mail", priority=5)
    steps = chain(call(work, 1), call(mail, 2)) | call(work)
    assert len(steps) == 3
    result = steps.enqueue()
    jobs = Job.objects.using(using).order_by("pk")
    assert list(jobs.values_list("queue_name", "rank")) == [
        ("default", 0), ("mail", -5), ("default", 0)
    ]  # fmt: skip
    driver, seen = Driver(using), []
    while claimed := driver.claim():
        for claim in claimed:
            driver.settle(driver.run(claim))
        result.refresh()
        seen.append((result.completed, result.pending))
    assert seen == [(1, 2), (2, 1), (3, 0)]
    assert result.values() == [1, 2, 2]


@on_every_database
def test_chain_is_enqueued_again_with_what_was_appended(using: str) -> None:
    short = chain(call(work, 1), call(work, 2))
    longer = short | call(add, Previous(), more=1)
    first, second = short.enqueue(), longer.enqueue()
    again = short.enqueue()
    assert len({first.id, second.id, again.id}) == 3
    finished(using, first)
    for result, values in ((first, [1, 2]), (second, [1, 2, 3]), (again, [1, 2])):
        result.refresh()
        assert result.values() == values


@on_every_database
def test_a_step_that_is_tried_again_enqueues_nothing_twice(using: str) -> None:
    moods[:] = [True, True]
    result = chain(call(moody, 1), call(work, 2)).enqueue()
    finished(using, result)
    assert ran == [1, 1, 1, 2]
    assert Job.objects.using(using).count() == 2


@on_every_database
def test_group_tells_failures_from_successes(using: str) -> None:
    both = group(call(work, 1), call(work, 2, "fail"), call(work, 3), on_failure=call(work, "told"))
    result = both.enqueue()
    with pytest.raises(TimeoutError, match="3 of 3 members are pending"):
        result.wait(0)
    finished(using, result)
    assert (result.total, result.completed, result.failed) == (3, 2, 1)
    assert [str(each.status).lower() for each in result.results()] == [
        "successful", "failed", "successful"
    ]  # fmt: skip
    with pytest.raises(ValueError, match="has not succeeded"):
        result.values()
    assert ran == [1, 2, 3, "told"]


@on_every_database
def test_group_is_found_by_its_id_as_long_as_it_is_kept(using: str) -> None:
    result = group(call(work, None), call(work, 0), call(work, "")).enqueue()
    finished(using, result)
    assert BatchResult.get(result.id).values() == [None, 0, ""]
    assert Job.objects.using(using).filter(membership__batch_id=result.id).count() == 3
    soon = Database.of(using).current_time() + timedelta(hours=1)
    assert FinishedBatches(using, soon).clear(10) == 1
    with pytest.raises(BatchDoesNotExist):
        BatchResult.get(result.id)


@on_every_database
def test_group_is_collected_in_order(using: str) -> None:
    both = group(call(work, 1), call(limited, 2), call(limited, 3)) | call(add, more=10)
    result = both.enqueue()
    assert Dependency.objects.using(using).count() == 1
    finished(using, result)
    assert result.values() == [[1, 2, 3], 16]


@on_every_database
def test_chains_and_groups_nest(using: str) -> None:
    inner = chain(call(work, 1), call(add, Previous(), 1))
    first = group(inner, call(work, 5), call(work, 6))
    second = group(call(add, Previous()), call(add, Previous(), 100), inner)
    result = chain(first, second, call(add, Previous(), ResultOf(0))).enqueue()
    waits = Dependency.objects.using(using).count()
    assert waits == 1 + 3 + 1 + 2
    finished(using, result)
    assert result.values() == [[2, 5, 6], [13, 113, 2], 128 + 13]


@on_every_database
def test_map_makes_a_group(using: str) -> None:
    result = work.map(range(5)).enqueue()
    finished(using, result)
    assert result.values() == list(range(5))
    assert result.total == 5


@on_every_database
def test_workflow_follows_its_branches(using: str) -> None:
    workflow = Workflow("import", on_finish=call(work, "done"), metadata={"shop": 1})
    fetch = workflow.add(call(work, 1, "fail"), name="fetch")
    workflow.add(call(work, "store"), name="store", after=[fetch])
    workflow.add(call(work, "mend"), name="mend", after="fetch", run_when="failure")
    workflow.add(call(work, "always"), after=["store", "mend"], run_when="finished")
    result = finished(using, workflow.enqueue())
    assert ran == [1, "mend", "always", "done"]
    assert str(result.status) == "failed"
    assert result.metadata == {"shop": 1}


@on_every_database
def test_skipped_branch_is_no_failure(using: str) -> None:
    workflow = Workflow()
    first = workflow.add(call(work, 1))
    mend = workflow.add(group(call(work, 2), call(work, 3)), after=[first], run_when="failure")
    workflow.add(call(work, 4), after=[mend])
    result = finished(using, workflow.enqueue())
    assert ran == [1]
    assert str(result.status) == "succeeded"


def discard_first(using: str) -> None:
    Job.objects.using(using).order_by("pk")[0].discard()


def told() -> dict[str, Any]:
    names = ("success", "failure", "finish")
    return {f"on_{name}": call(work, name) for name in names}


@on_every_database
def test_chain_of_which_a_step_is_discarded_has_failed(using: str) -> None:
    result = chain(call(work, 1), call(work, 2), call(work, 3), **told()).enqueue()
    discard_first(using)
    result = finished(using, result)
    assert ran == ["failure", "finish"]
    assert (str(result.status), result.failed, result.completed) == ("failed", 2, 1)
    # There is nothing that those which come after it could be given.
    assert result.retry() == 2
    result = finished(using, result)
    assert (str(result.status), result.failed) == ("failed", 2)
    assert ran == ["failure", "finish"] * 2


@on_every_database
def test_last_step_is_no_failure_in_itself_but_of_what_comes_after_its_chain(using: str) -> None:
    inner = chain(call(work, 1), call(work, 2), **told())
    result = inner.enqueue()
    Job.objects.using(using).order_by("-pk")[0].discard()
    result = finished(using, result)
    assert ran == [1, "success", "finish"]
    assert (str(result.status), result.failed, result.retry()) == ("succeeded", 0, 0)

    ran.clear()
    result = chain(inner, call(work, "after")).enqueue()
    Job.objects.using(using).filter(waitingexecution__isnull=False).order_by("pk")[0].discard()
    result = finished(using, result)
    assert ran == [1, "success", "finish"]
    assert (str(result.status), result.failed) == ("failed", 1)


@on_every_database
def test_what_collects_a_group_does_not_run_without_a_member_that_is_discarded(using: str) -> None:
    result = (group(call(work, 1), call(work, 2), **told()) | call(add)).enqueue()
    discard_first(using)
    result = finished(using, result)
    assert ran == [2, "success", "finish"]
    assert (str(result.status), result.failed) == ("failed", 1)


@on_every_database
def test_node_that_needs_one_that_is_discarded_has_failed_and_others_have_not(using: str) -> None:
    workflow = Workflow(**told())
    first = workflow.add(call(work, 1))
    after = workflow.add(call(work, 2), after=[first])
    workflow.add(call(work, "mend"), after=[after], run_when="failure")
    workflow.add(call(work, "never"), after=[first], run_when="failure")
    workflow.add(call(work, "always"), after=[first], run_when="finished")
    result = workflow.enqueue()
    discard_first(using)
    result = finished(using, result)
    assert ran == ["always", "mend", "failure", "finish"]
    assert (str(result.status), result.failed, result.completed) == ("failed", 1, 4)

    ran.clear()
    workflow = Workflow(**told())
    workflow.add(call(work, 1))
    workflow.add(call(work, 2))
    result = workflow.enqueue()
    Job.objects.using(using).filter(readyexecution__isnull=False).order_by("pk")[0].discard()
    assert str(finished(using, result).status) == "succeeded"
    assert ran == [2, "success", "finish"]


@on_every_database
def test_skipped_group_has_neither_succeeded_nor_failed(using: str) -> None:
    workflow = Workflow()
    first = workflow.add(call(work, 1))
    workflow.add(group(call(work, 2), **told()), after=[first], run_when="failure")
    assert str(finished(using, workflow.enqueue()).status) == "succeeded"
    assert ran == [1, "finish"]


@on_every_database
def test_what_a_failure_has_cancelled_has_failed_though_the_failure_is_mended(using: str) -> None:
    moods[:] = [True]
    workflow = Workflow(on_success=call(work, "done"))
    first = workflow.add(call(unlucky, 1))
    workflow.add(call(work, 2), after=[first])
    result = workflow.enqueue()
    driver = Driver(using)
    [claim] = driver.claim()
    driver.settle(driver.run(claim))
    # Now the other one is asked to end, and before a worker does so, the first one succeeds.
    assert Job.objects.using(using).get(pk=claim.job_id).retry()
    claims = {each.job_id: each for each in driver.claim()}
    driver.settle(driver.run(claims.pop(claim.job_id)))
    [asked] = claims.values()
    driver.settle(driver.run(asked))
    result.refresh()
    assert ran == [1, 1]
    assert (str(result.status), result.failed) == ("failed", 1)


@on_every_database
def test_workflow_grows_while_it_runs(using: str) -> None:
    workflow = Workflow("grows")
    fetch = workflow.add(call(work, 1), name="fetch")
    workflow.add(call(grow), name="grow", after=[fetch])
    result = finished(using, workflow.enqueue())
    assert "never" not in ran
    members = BatchMember.objects.using(using).filter(batch_id=result.id).order_by("pk")
    names = list(members.values_list("name", flat=True))
    assert names == ["fetch", "grow", "grown", "sum", "", "both"]
    assert str(result.status) == "succeeded"
    values = [each.return_value for each in result.results()[:4]]
    assert values == [1, "grown", 1, 11]


@on_every_database
def test_ended_workflow_takes_no_more_nodes(using: str) -> None:
    from steady_queue_core.batches.workflow import workflow_of

    workflow = Workflow()
    workflow.add(call(work, 1))
    result = finished(using, workflow.enqueue())
    with pytest.raises(AlreadyFinished):
        workflow_of(result.id, result.backend).add(call(work, 2))  # type: ignore[union-attr]


@on_every_database
def test_graphs_belong_to_the_open_batch_and_wait_together(using: str) -> None:
    with Batch(on_success=call(work, "all")) as batch:
        result = chain(call(work, 1), call(work, 2)).enqueue()
    finished(using, result)
    batch.refresh()
    assert (batch.total, str(batch.status)) == (1, "succeeded")
    assert ran == [1, 2, "all"]


@on_every_database
def test_results_are_kept_for_those_that_wait(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0, preserve_finished_jobs=False)
    brief = work.using(retention=timedelta(0))
    result = chain(call(brief, 1), call(work, Previous())).enqueue()
    assert finished(using, result).values() == [1, 1]


@on_every_database
def test_result_that_is_gone_fails_the_job(using: str) -> None:
    result = chain(call(work, 1), call(work, Previous())).enqueue()
    driver = Driver(using)
    [claim] = driver.claim()
    driver.settle(driver.run(claim))
    Job.objects.using(using).filter(pk=claim.job_id).update(return_value=None)
    finished(using, result)
    assert "is gone" in result.results()[1].errors[-1].traceback


@on_every_database
def test_cancelled_chain_ends(using: str) -> None:
    result = chain(call(work, 1), group(call(work, 2), call(work, 3)), call(work, 4)).enqueue()
    assert result.cancel()
    assert str(finished(using, result).status) == "cancelled"
    assert ran == []


@on_every_database
def test_large_workflow_is_stored_in_few_statements(using: str) -> None:
    def build(size: int) -> Workflow:
        workflow = Workflow()
        nodes = [workflow.add(call(work, 0))]
        for number in range(1, size):
            nodes.append(workflow.add(call(work, number), after=[nodes[(number - 1) // 2]]))
        return workflow

    counts = []
    for size in (100, 2100):
        with CaptureQueriesContext(connections[using]) as queries:
            build(size).enqueue()
        counts.append(len(queries))
    # Django 5.2 gives SQLite at most 999 values in a statement.
    takes_few = (connections[using].features.max_query_params or 10**6) < 1000
    assert counts[1] - counts[0] < (60 if takes_few else 40)


@on_every_database
def test_mistakes_are_named(using: str) -> None:
    with pytest.raises(ValueError, match="at least one"):
        chain()
    with pytest.raises(ValueError, match="at least one"):
        group()
    with pytest.raises(ValueError, match="at least one"):
        work.map([])
    with pytest.raises(TypeError, match=r"chain\[0\] is of type int"):
        chain(3)
    with pytest.raises(ValueError, match="no step before"):
        chain(call(work, Previous())).enqueue()
    with pytest.raises(ValueError, match="1 steps before it"):
        chain(call(work), call(work, ResultOf(1))).enqueue()
    with pytest.raises(InvalidTask, match="unique"):
        chain(call(work), call(once)).enqueue()
    with pytest.raises(ValueError, match="did you mean 'success'"):
        Workflow().add(call(work), run_when="sucess")
    with pytest.raises(ValueError, match="at least one"):
        Workflow().enqueue()
    one, other = Workflow(), Workflow()
    node = one.add(call(work), name="fetch", after=["store"])
    one.add(call(work), name="store", after=["fetch"])
    with pytest.raises(ValueError, match=r"cycle: '(fetch|store)' -> '(fetch|store)' -> '"):
        one.enqueue()
    other.add(call(work, node.result))
    with pytest.raises(InvalidTask, match="another workflow"):
        other.enqueue()
    third = Workflow()
    third.add(call(work), name="fetch")
    third.add(call(work), after="fech")
    with pytest.raises(ValueError, match="did you mean 'fetch'"):
        third.enqueue()
    assert JobBatch.objects.using(using).count() == 0
    assert Job.objects.using(using).count() == 0
