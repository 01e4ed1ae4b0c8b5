"""The picture of a batch as Mermaid text, on every database."""

from __future__ import annotations

import re
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connections
from django.test.utils import CaptureQueriesContext

from steady_queue_core import Batch, BatchResult, Fail, Workflow, call, chain, group, task
from steady_queue_core.models import BatchMember, Dependency, Job, JobBatch

from ..core.driver import Driver
from .everywhere import on_every_database
from .recurrence import tasks


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)


@task(max_attempts=1)
def work(value: Any = None) -> Any:
    if value == "fail":
        raise Fail("no stock")
    return value


def keys(batch: Any) -> list[int]:
    """Return the ids of all members of this database, in their order."""
    rows = BatchMember.objects.using(batch.using).order_by("pk")
    return list(rows.values_list("pk", flat=True))


def drawn(text: str) -> tuple[dict[str, tuple[str, str]], list[tuple[str, str, str]]]:
    """Return the nodes of a flowchart, with label and state, and its arrows, with their words;
    each line has to be one that is known."""
    nodes, arrows, opened = {}, [], 0
    first, *lines = text.splitlines()
    assert first == "flowchart TD"
    for line in map(str.strip, lines):
        if found := re.fullmatch(r'(\w+)\["([\w #;.,/-]+)"\](?::::(\w+))?', line):
            nodes[found[1]] = (found[2], found[3] or "")
        elif found := re.fullmatch(r'subgraph (\w+)\["([\w #;.,/-]+)"\]', line):
            nodes[found[1]], opened = (found[2], "subgraph"), opened + 1
        elif found := re.fullmatch(r"(\w+) -->(?:\|(\w+)\|)? (\w+)", line):
            arrows.append((found[1], found[3], found[2] or ""))
        elif line == "end":
            opened -= 1
        else:
            assert re.fullmatch(r"(class m\d+ \w+|classDef \w+ [\w#:,-]+( \d)?)", line), line
    assert not opened
    return nodes, arrows


@on_every_database
def test_a_workflow_is_drawn_with_states_and_branches(using: str) -> None:
    workflow = Workflow("import")
    workflow.add(call(work, 1), name="fetch it")
    workflow.add(call(work, "fail"), name="import_rows", after=["fetch it"])
    workflow.add(call(work), after=["import_rows"])
    workflow.add(call(work), name="clean", after=["import_rows"], run_when="failure")
    workflow.add(call(work), name="tell", after=["fetch it", "clean"], run_when="finished")
    result = workflow.enqueue()
    a, b, c, d, e = (f"m{key}" for key in keys(result))
    nodes, arrows = drawn(result.mermaid())
    assert nodes == {
        a: ("fetch it", "pending"), b: ("import_rows", "waiting"), c: ("work", "waiting"),
        d: ("clean", "waiting"), e: ("tell", "waiting"),
    }  # fmt: skip
    assert sorted(arrows) == sorted(
        [(a, b, ""), (b, c, ""), (b, d, "failure"), (a, e, "finished"), (d, e, "finished")]
    )
    Driver(using).work()
    nodes, again = drawn(async_to_sync(result.amermaid)())
    assert again == arrows
    assert [state for _, state in nodes.values()] == [
        "succeeded", "failed", "cancelled", "succeeded", "succeeded",
    ]  # fmt: skip


@on_every_database
def test_batches_in_it_are_drawn_around_their_members(using: str) -> None:
    result = chain(
        call(work), group(chain(call(work), call(work)), call(work)), call(work)
    ).enqueue()
    first, outer, inner, one, two, three, last = (f"m{key}" for key in keys(result))
    text = result.mermaid()
    nodes, arrows = drawn(text)
    assert [nodes[key][1] for key in (outer, inner)] == ["subgraph", "subgraph"]
    assert nodes[outer][0].startswith("group #35;")
    assert sorted(arrows) == sorted(
        [(first, one, ""), (one, two, ""), (first, three, ""), (outer, last, "")]
    )
    order = [text.index(each) for each in (f"subgraph {outer}", f"subgraph {inner}", f"{one}[")]
    assert order == sorted(order)


@on_every_database
def test_a_large_batch_is_cut_and_read_in_a_bounded_number_of_statements(using: str) -> None:
    def statements(result: Any) -> int:
        with CaptureQueriesContext(connections[using]) as captured:
            result.mermaid()
        return len(captured)

    small = (group(*(call(work, each) for each in range(3))) | call(work)).enqueue()
    large = (group(*(call(work, each) for each in range(300))) | call(work)).enqueue()
    flat = group(*(call(work, each) for each in range(1_300))).enqueue()
    assert statements(small) == statements(large)
    assert statements(flat) <= 7
    nodes, arrows = drawn(large.mermaid())
    assert len(nodes) == 201
    assert ("... and more", "") in nodes.values()
    assert len(arrows) == 1
    nodes, _ = drawn(flat.mermaid())
    assert len(nodes) == 201
    assert nodes["more"] == ("... and 1,100 more", "")


@on_every_database
def test_many_batches_in_one_are_read_in_a_bounded_number_of_statements(using: str) -> None:
    groups = [group(call(work), call(work)) for _ in range(60)]
    workflow = Workflow()
    start = workflow.add(call(work))
    for each in groups:
        workflow.add(each, after=[start])
    result = workflow.enqueue()
    with CaptureQueriesContext(connections[using]) as captured:
        text = result.mermaid()
    assert len(captured) <= 9
    nodes, arrows = drawn(text)
    assert len(nodes) == 1 + 60 + 2 * 40
    # Those that are not looked into are drawn after it as a whole.
    assert len(arrows) == 2 * 40 + 20


@on_every_database
def test_no_label_breaks_the_text(using: str) -> None:
    names = [
        'end"]', "a\nb --> c", "%% comment", "1. list", "- list", "`code`", "**bold**", "#quot;",
        "<script>alert(1)</script>", "style x:#35;", "\u202eright\x1b[31m", "x" * 250, "  ", "-",
        "click m1 href", "subgraph", "]]", "fa:fa-ban", "$$x$$", "Ås ünïcode 東京",
    ]  # fmt: skip
    workflow = Workflow()
    for name in names:
        workflow.add(call(work), name=name)
    result = workflow.enqueue()
    nodes, _ = drawn(result.mermaid())
    labels = [label for label, _ in nodes.values()]
    assert len(labels) == len(names)
    assert labels[0] == "end#34;#93;"
    assert labels[3] == "1#46; list"
    assert labels[-1] == "Ås ünïcode 東京"
    assert max(map(len, labels)) < 200


@on_every_database
def test_damaged_rows_are_drawn_as_far_as_they_go(using: str) -> None:
    with Batch("outer") as outer, Batch("inner") as inner:
        chained = chain(call(work), call(work)).enqueue()
    members = BatchMember.objects.using(using)
    first, second = members.filter(batch_id=chained.id).order_by("pk")
    # The batches are in each other, the jobs wait for each other, and for the batch they are in.
    turned = members.create(batch_id=inner.id)
    JobBatch.objects.using(using).filter(pk=outer.id).update(member=turned)
    inside = members.get(nested=chained.id)
    for parent, child, when in ((second, first, 0), (inside, first, 9), (first, first, 1)):
        Dependency.objects.using(using).create(
            job_id=child.job_id, parent_id=parent.pk, run_when=when, state=7, number=5
        )
    members.filter(pk=second.pk).update(state=-3)
    Job.objects.using(using).filter(pk=first.job_id)._raw_delete(using)
    text = Batch.get(outer.id).mermaid()
    nodes, arrows = drawn(text)
    assert nodes[f"m{second.pk}"] == ("work", "unknown")
    assert nodes[f"m{first.pk}"][0] == f"job #35;{first.job_id}"
    assert {(f"m{first.pk}", f"m{second.pk}", ""), (f"m{second.pk}", f"m{first.pk}", "")} == {
        *arrows
    }


@on_every_database
def test_batches_that_are_in_each_other_are_cancelled_and_retried(using: str) -> None:
    with Batch() as outer, Batch() as inner:
        work.enqueue("fail")
    members = BatchMember.objects.using(using)
    JobBatch.objects.using(using).filter(pk=outer.id).update(
        member=members.create(batch_id=inner.id)
    )
    assert Batch.get(outer.id).cancel()
    members.filter(nested__isnull=False).update(state=2)
    assert BatchResult.get(outer.id).retry() == 1
