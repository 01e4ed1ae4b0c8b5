"""The graph of a batch on its page: what is drawn where, for whom, and under which policy."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from steady_queue_core import Workflow, call, chain, group
from steady_queue_core.admin.graph_svg import ABREAST, COLUMNS, STYLES, fitting, layers_of
from steady_queue_core.batches import mermaid
from steady_queue_core.batches.nodes import RUNNING, UNKNOWN, WAITING
from steady_queue_core.dialects import MemberState
from steady_queue_core.models import BatchMember, Dependency

from ..app.tasks import fail, noop
from ..core.driver import Driver
from .places import Scene, on_every_database
from .visitor import EVERYTHING, Page, Visitor

SVG = "{http://www.w3.org/2000/svg}"


def page_of(batch_id: int, *permissions: str) -> Page:
    visitor = Visitor(*(permissions or EVERYTHING))
    return visitor.see(visitor.url("jobbatch", "change", batch_id))


class Graph:
    """The graph on a page, taken apart."""

    def __init__(self, page: Page) -> None:
        [text] = re.findall(r'<svg [^>]*aria-label="Graph".*?</svg>', page.source, re.DOTALL)
        self.root = ElementTree.fromstring(text)

    @property
    def nodes(self) -> dict[str, tuple[float, float]]:
        """Where the nodes are, by their titles."""
        found = {}
        for each in self.root:
            box = each.find(f"{SVG}rect")
            if box is not None:
                title = each.find(f"{SVG}title")
                assert title is not None
                found[str(title.text)] = float(box.attrib["x"]), float(box.attrib["y"])
        return found

    @property
    def links(self) -> list[str]:
        return [each.attrib["href"] for each in self.root if each.tag == f"{SVG}a"]

    @property
    def lines(self) -> list[tuple[str, bool]]:
        """What the lines say, and whether they are dashed."""
        return [
            (str(each.findtext(f"{SVG}title")), each.attrib["stroke-dasharray"] != "none")
            for each in self.root
            if each.tag == f"{SVG}path"
        ]


def branching(using: str) -> Any:
    workflow = Workflow("billing")
    fetched = workflow.add(call(noop), name="fetch")
    both = workflow.add(
        group(call(noop), chain(call(noop), call(noop))), name="both", after=fetched
    )
    charged = workflow.add(call(fail, "refused"), name="charge", after=[both])
    workflow.add(call(noop), name="thank", after=[charged])
    workflow.add(call(noop), name="remind", after=[charged, fetched], run_when="finished")
    return workflow.enqueue()


@on_every_database
def test_each_node_is_below_what_it_waits_for(using: str, scene: Scene) -> None:
    result = branching(using)
    page = page_of(result.id)
    graph = Graph(page)
    rows = [y for _, y in graph.nodes.values()]
    assert [*graph.nodes] == [
        "fetch: pending", "both: pending", "charge: waiting", "thank: waiting", "remind: waiting",
    ]  # fmt: skip
    assert rows[0] < rows[1] < rows[2] < rows[3] == rows[4]
    assert sorted(graph.lines) == sorted([
        ("after success", False), ("after success", False), ("after success", False),
        ("after finished", True), ("after finished", True),
    ])  # fmt: skip
    assert len(graph.links) == 5
    visitor = Visitor(*EVERYTHING)
    assert [visitor.see(link).status for link in graph.links] == [200] * 5
    assert "/jobbatch/" in graph.links[1]

    while Driver(using).work():
        pass
    states = [each.rpartition(" ")[2] for each in Graph(page_of(result.id)).nodes]
    assert states == ["succeeded", "succeeded", "failed", "cancelled", "succeeded"]


@on_every_database
def test_a_large_graph_is_cut(using: str, scene: Scene) -> None:
    workflow = Workflow()
    nodes = [workflow.add(call(noop), name=f"n{number}") for number in range(120)]
    for number, node in enumerate(nodes):
        workflow.add(call(noop), name=f"after {number}", after=[node])
    page = page_of(workflow.enqueue().id)
    graph = Graph(page)
    assert len(graph.nodes) == 200
    assert len(graph.lines) == 80
    assert len({x for x, _ in graph.nodes.values()}) == ABREAST
    assert len({*graph.nodes.values()}) == 200
    assert "The first 200 members." in page
    assert len(page.source) < 300_000


@pytest.mark.django_db
def test_pages_need_neither_inline_scripts_nor_inline_styles(scene: Scene) -> None:
    result = branching("default")
    visitor = Visitor(*EVERYTHING)
    member = BatchMember.objects.filter(name="remind").get()
    pages = [
        page_of(result.id), visitor.list("jobbatch"), visitor.list(state="waiting"),
        visitor.see(visitor.url("job", "change", member.job_id)),
        visitor.post(visitor.url("jobbatch", "cancel", result.id)),
    ]  # fmt: skip
    for page in pages:
        assert page.status == 200
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page.source)
        for attributes, text in re.findall(
            r"<script([^>]*)>(.*?)</script>", page.source, re.DOTALL
        ):
            assert "src=" in attributes
            assert not text.strip()
    assert "var(--body-fg)" in pages[0].source


@pytest.mark.django_db
def test_whoever_may_not_see_batches_sees_no_graph(scene: Scene) -> None:
    result = branching("default")
    assert page_of(result.id, "view_job").status == 403
    assert Graph(page_of(result.id, "view_jobbatch")).nodes


@on_every_database
def test_cycles_and_damaged_rows_are_drawn(using: str, scene: Scene) -> None:
    result = branching(using)
    members = BatchMember.objects.using(using).filter(batch_id=result.id).order_by("pk")
    rows = list(members)
    Dependency.objects.using(using).create(
        job_id=rows[0].job_id, parent_id=rows[3].pk, run_when=77, state=0, number=0
    )
    members.filter(pk=rows[2].pk).update(state=99, name="\x1b[2J<b>\u202e" + "y" * 200)
    page = page_of(result.id)
    nodes = Graph(page).nodes
    assert len(nodes) == 5
    assert "\x1b" not in page.source
    assert "<b>" not in page.source
    assert [each for each in nodes if each.endswith(": unknown")]


def test_layers_are_the_longest_ways() -> None:
    edges = [(1, 2), (2, 3), (1, 3), (4, 3), (3, 5)]
    assert layers_of([1, 2, 3, 4, 5, 6], edges) == [[[1, 4, 6]], [[2]], [[3]], [[5]]]
    assert layers_of([1, 2, 3], [(1, 2), (2, 3), (3, 2)]) == [[[1]], [[2, 3]]]
    wide = layers_of([*range(12)], [])
    assert [len(row) for row in wide[0]] == [5, 5, 2]
    long = layers_of([*range(500)], [*pairwise(range(500))])
    assert len(long) == 500


def test_children_stand_below_their_parents() -> None:
    edges = [(1, 6), (2, 5), (3, 4)]
    assert layers_of([1, 2, 3, 4, 5, 6], edges) == [[[1, 2, 3]], [[6, 5, 4]]]


def test_labels_fit_into_their_nodes() -> None:
    assert fitting("x" * COLUMNS) == "x" * COLUMNS
    assert fitting("x" * 100) == "x" * (COLUMNS - 1) + "…"
    assert fitting("東" * 100) == "東" * (COLUMNS // 2 - 1) + "…"


def test_every_state_has_a_look() -> None:
    states = {*(state.name.lower() for state in MemberState), WAITING, RUNNING, UNKNOWN}
    assert states == {*STYLES} == {*mermaid.STYLES}
