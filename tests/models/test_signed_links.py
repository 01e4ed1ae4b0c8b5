"""What somebody who writes to the database, without the secret key, can do to signed jobs: which
results they are given, and what their metadata say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from steady_queue_core import Previous, Workflow, call, chain, group, task
from steady_queue_core.models import BatchMember, Dependency, Job
from steady_queue_core.payloads import signed_metadata
from steady_queue_core.tasks.metadata import JobMetadata

from ..core.driver import Driver
from .everywhere import on_every_database
from .recurrence import tasks

PAID: list[Any] = []
SIGNATURE_ERROR = "steady_queue_core.payloads.errors.PayloadSignatureError"


@task
def price(amount: int) -> int:
    return amount


@task
def pay(amount: Any) -> None:
    PAID.append(amount)


@task
def told(job_id: Any, *others: Any) -> None:
    PAID.append("told")


@task(delivery="at_least_once", on_failure=told, metadata={"by": "Ada"}, timeout=60)
def careful(what: str) -> str:
    PAID.append(what)
    return what


@task(takes_context=True, max_attempts=2, backoff=lambda error, result: 0)
def plan(context: Any, kind: str) -> None:
    steps = {
        "call": call(price, 2),
        "group": group(call(price, 2), chain(call(price, 3), call(price, 4)), call(price, 5)),
        "chain": chain(call(price, 1), group(call(price, 2), call(price, 3))),
    }
    node = context.workflow.add(steps[kind], name="prices")
    if context.attempt == 1:
        raise LookupError
    context.workflow.add(call(pay, node.result), name="first")
    again = context.workflow.add(steps[kind])
    context.workflow.add(chain(call(price, 1), call(pay, {"again": again.result})))


@pytest.fixture(autouse=True)
def _project(request: pytest.FixtureRequest, settings: Any) -> None:
    PAID.clear()
    if "using" in request.fixturenames:
        using = request.getfixturevalue("using")
        settings.TASKS = tasks(using, payload={"sign": True})


def jobs(using: str, function: Any) -> Any:
    return Job.objects.using(using).filter(task_path=function.module_path).order_by("pk")


def errors_of(using: str, function: Any) -> list[str]:
    """Return the errors of the jobs of a task, as text."""
    return [str(job.errors) for job in jobs(using, function) if job.errors]


def links(using: str) -> Any:
    return Dependency.objects.using(using).order_by("job_id")


@on_every_database
def test_results_are_given_as_without_a_signature(using: str) -> None:
    inner = group(call(price, 2), chain(call(price, 3), call(price, 4)), call(price, 5))
    chain(call(price, 1), call(pay, Previous())).enqueue()
    chain(inner, call(pay, {"all": [Previous()]})).enqueue()
    chain(group(*[call(price, n) for n in range(4)]), call(pay, Previous())).enqueue()
    Driver(using).work()
    assert sorted(PAID, key=str) == [1, [0, 1, 2, 3], {"all": [[2, 4, 5]]}]


@on_every_database
@pytest.mark.parametrize(("kind", "value"), [("call", 2), ("group", [2, 4, 5]), ("chain", [2, 3])])
def test_results_are_given_to_nodes_that_are_added_later(using: str, kind: str, value: Any) -> None:
    workflow = Workflow()
    workflow.add(call(plan, kind))
    workflow.enqueue()
    Driver(using).work()
    assert sorted(PAID, key=str) == sorted([value, {"again": value}], key=str)


@on_every_database
@pytest.mark.parametrize("kind", ["call", "group", "chain"])
def test_nodes_that_are_added_later_are_not_given_other_results(using: str, kind: str) -> None:
    driver, batches = Driver(using), []
    for _ in range(2):
        workflow = Workflow()
        workflow.add(call(plan, kind))
        batches.append(workflow.enqueue().id)
    for _ in range(2):
        for claim in driver.claim():
            driver.settle(driver.run(claim))
    members = BatchMember.objects.using(using).order_by("pk")
    own, other = ([row.pk for row in members.filter(batch_id=batch)] for batch in batches)
    for pk, another in zip(own, other, strict=True):
        links(using).filter(parent_id=pk).update(parent_id=another)
    driver.work()
    assert len(PAID) == 2
    refused = errors_of(using, pay)
    assert len(refused) == 2
    assert all(SIGNATURE_ERROR in error for error in refused)


@on_every_database
def test_a_job_is_not_given_the_result_of_another_workflow(using: str) -> None:
    for amount in (1, 999):
        chain(call(price, amount), call(pay, Previous())).enqueue()
    other = links(using).last().parent_id
    links(using).filter(pk=links(using).first().pk).update(parent_id=other)
    driver = Driver(using)
    driver.work()
    assert PAID == [999]
    [error] = errors_of(using, pay)
    assert "It is that of another job than the one that the signed call refers to" in error


@on_every_database
def test_a_member_does_not_become_another_job(using: str) -> None:
    chain(call(price, 1), call(pay, Previous())).enqueue()
    stranger = price.enqueue(999)
    driver = Driver(using)
    [own] = [claim for claim in driver.claim() if claim.job_id != int(stranger.id)][:1] or [None]
    assert own is not None
    driver.settle(driver.run(own))
    Job.objects.using(using).filter(pk=int(stranger.id)).update(
        metadata=jobs(using, price).first().metadata
    )
    BatchMember.objects.using(using).filter(job_id=own.job_id).update(job_id=int(stranger.id))
    driver.work()
    assert PAID == []
    assert len(errors_of(using, pay)) == 1


@on_every_database
@pytest.mark.parametrize("kind", ["less", "more", "moved"])
def test_a_group_is_not_given_in_another_form(using: str, kind: str) -> None:
    chain(group(call(price, 1), call(price, 2)), call(pay, Previous())).enqueue()
    rows = BatchMember.objects.using(using).filter(job__task_path=price.module_path).order_by("pk")
    driver = Driver(using)
    for claim in driver.claim():
        driver.settle(driver.run(claim))
    first, second = rows
    if kind == "less":
        rows.filter(pk=second.pk).delete()
    elif kind == "more":
        BatchMember.objects.using(using).create(batch_id=first.batch_id, state=second.state)
    else:
        rows.filter(pk=second.pk).update(job_id=None)
        rows.model.objects.using(using).filter(pk=first.pk).update(job_id=second.job_id)
    driver.work()
    assert PAID == []
    assert len(errors_of(using, pay)) == 1


@on_every_database
@pytest.mark.parametrize(
    "change",
    [
        {"delivery": "at_most_once"},
        {"on_failure": None},
        {"on_success": (told.module_path, "default", 0, "default")},
        {"user": {"by": "Eve"}},
        {"timeout": 5.0},
        {"retention": "forever"},
        {"max_crashes": 99},
    ],
)
def test_options_in_metadata_are_not_changed(using: str, change: dict[str, Any]) -> None:
    careful.enqueue("Ada")
    known = JobMetadata.read(jobs(using, careful).get().metadata)
    values = {each: getattr(known, each) for each in known.__slots__}
    jobs(using, careful).update(metadata=JobMetadata(**{**values, **change}).text())
    Driver(using).work()
    assert PAID == []
    assert SIGNATURE_ERROR in errors_of(using, careful)[0]
    # Not even the callback of the failure, which somebody may have named.
    assert not jobs(using, told).exists()


@on_every_database
def test_options_are_not_added_to_a_plain_job(using: str) -> None:
    price.enqueue(1)
    jobs(using, price).update(
        metadata=JobMetadata(on_failure=(told.module_path, "default", 0, "default")).text()
    )
    Driver(using).work()
    assert SIGNATURE_ERROR in errors_of(using, price)[0]


@on_every_database
def test_results_of_backends_that_do_not_sign_go_to_those_that_do(
    using: str, settings: Any
) -> None:
    signed = settings.TASKS["default"]
    plain = {**signed, "OPTIONS": {**signed["OPTIONS"], "payload": {}}}
    settings.TASKS = {"default": signed, "plain": plain}
    chain(call(price.using(backend="plain"), 1), call(pay, Previous())).enqueue()
    Driver(using).work()
    assert PAID == [1]


@pytest.mark.django_db(transaction=True)
def test_what_is_signed_costs_no_statement(settings: Any) -> None:
    def statements(**payload: Any) -> list[int]:
        settings.TASKS = tasks("default", payload=payload)
        counts = []
        for enqueue in (lambda: price.enqueue(1), lambda: careful.enqueue("Ada"), in_a_chain):
            with CaptureQueriesContext(connections["default"]) as captured:
                enqueue()
                Driver("default").work()
            counts.append(len(captured))
        return counts

    statements()  # What is asked once.
    assert statements(sign=True) == statements()


def in_a_chain() -> None:
    chain(call(price, 1), call(pay, Previous())).enqueue()


@on_every_database
def test_an_honest_job_has_its_options(using: str) -> None:
    careful.enqueue("Ada")
    Driver(using).work()
    assert PAID == ["Ada"]


def test_what_the_queue_changes_is_not_covered() -> None:
    metadata = JobMetadata(delivery="at_least_once", user={"a": 1})
    text = metadata.text()
    changed = replace(metadata, snoozes=3, crashes=("p",), slot=(1, 1), fair="k", discarded="no")
    assert signed_metadata.covered(changed.text()) == signed_metadata.covered(text)
    assert signed_metadata.covered(JobMetadata(snoozes=1).text()) is None
    assert signed_metadata.covered("{broken") == "{broken"
    assert signed_metadata.node_in('{"user": {"node": "x"}}') is None
