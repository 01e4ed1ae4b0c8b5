"""The admin on a phone: everything that one presses or types in has room, and can be seen."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from ..admin.visitor import Visitor
from .conftest import chief
from .site import Site
from .situation import Situation
from .tab import NARROW, WIDE, Tab

pytestmark = [pytest.mark.django_db]
#: Boxes of what a selector finds: left, right and width.
BOXES = """(selector) => [...document.querySelectorAll(selector)]
    .map((each) => each.getBoundingClientRect())
    .filter(({ width }) => width > 0)
    .map(({ left, right, width }) => [left, right, width])"""
#: The labels of charts: their texts if they are cut, and how high they are.
LABELS = """[...document.querySelectorAll(".sq-chart")].flatMap((chart) => {
    const box = chart.getBoundingClientRect();
    return [...chart.querySelectorAll("text")].map((each) => {
        const { left, right, height } = each.getBoundingClientRect();
        const cut = left < box.left - 0.5 || right > box.right + 0.5;
        return [cut ? each.textContent : "", height];
    });
})"""


@pytest.fixture(scope="module")
def visitor(site: Site) -> Visitor:
    return chief()


@pytest.fixture(scope="module")
def situation(site: Site, visitor: Visitor) -> Situation:
    return Situation("default").plant()


@pytest.fixture(autouse=True)
def _narrow(tab: Tab, situation: Situation) -> Any:
    tab.resize(NARROW)
    yield
    tab.resize(WIDE)


def boxes(tab: Tab, selector: str) -> list[list[float]]:
    found: list[list[float]] = tab.do(lambda page: page.evaluate(BOXES, selector))
    assert found, selector
    return found


def test_fields_of_the_search_have_room(tab: Tab) -> None:
    tab.open(reverse("admin:steady_queue_job_changelist"))
    assert len(boxes(tab, "#searchbar, #arguments-searchbar")) == 2
    for left, right, width in boxes(tab, "#searchbar, #arguments-searchbar"):
        assert width >= 120
        assert left >= 0
        assert right <= NARROW


def test_buttons_are_seen_without_scrolling(tab: Tab) -> None:
    tab.open(reverse("admin:steady_queue_overview_changelist"))
    assert boxes(tab, "[aria-label^='Pause '], [aria-label^='Resume ']")
    for left, right, _ in boxes(tab, ".sq-wide button"):
        assert left >= 0
        assert right <= NARROW


def test_labels_of_charts_are_whole(tab: Tab) -> None:
    tab.open(reverse("admin:steady_queue_overview_changelist"))
    labels = tab.evaluate(LABELS)
    assert labels
    assert [cut for cut, _ in labels if cut] == []
    assert min(height for _, height in labels) >= 9
