"""All that a page offers is reached by the keyboard, and one sees where one is."""

from __future__ import annotations

import pytest

from ..admin.visitor import Visitor
from .conftest import chief
from .site import Site
from .situation import Situation
from .tab import NARROW, WIDE, Tab
from .walk import PLACES, Place

pytestmark = [pytest.mark.django_db]
#: Pages with all that others have.
TITLES = {
    "overview", "failed jobs", "error groups", "change failed", "discarding a job", "queues",
    "moving a job", "change workflow", "change queue", "processes", "add share", "change schedule",
}  # fmt: skip
#: Those of a merge.
FEW = {"overview", "failed jobs", "change failed", "moving a job"}
#: What can be reached, in its order.
TARGETS = """window.targets = [...document.querySelectorAll(
        "#content :is(a[href], button, input:not([type=hidden]), select, summary, [tabindex='0'])")]
    .filter((each) => each.checkVisibility({ visibilityProperty: true }) && !each.disabled);
    window.targets.map((each) => each.outerHTML.slice(0, 150))"""
#: Pages that refresh themselves would take away what has the focus.
STOP_TIMERS = "for (let id = setTimeout(() => {}); id > 0; id--) clearTimeout(id);"
#: The index of what has the focus, and whether its looks tell; -1: it is elsewhere.
FOCUSED = """() => {
    const looks = (each) => {
        each.getAnimations().forEach((animation) => animation.finish());
        const { outlineStyle, outlineWidth, boxShadow, borderColor, backgroundColor, color,
            textDecorationLine } = getComputedStyle(each);
        return [outlineStyle === "none" ? "" : outlineWidth, boxShadow, borderColor,
            backgroundColor, color, textDecorationLine].join();
    };
    const focused = document.activeElement, at = window.targets.indexOf(focused);
    if (at < 0) return [at, true];
    const before = looks(focused);
    focused.blur();
    const after = looks(focused);
    focused.focus({ focusVisible: true, preventScroll: true });
    return [at, before !== after];
}"""


@pytest.fixture(scope="module")
def visitor(site: Site) -> Visitor:
    return chief()


@pytest.fixture(scope="module")
def situation(site: Site) -> Situation:
    return Situation("default").plant()


@pytest.mark.parametrize("width", [WIDE, pytest.param(NARROW, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("place", [
    pytest.param(each, marks=() if each.title in FEW else pytest.mark.thorough)
    for each in PLACES if each.title in TITLES
], ids=str)  # fmt: skip
def test_all_is_reached_by_tab(place: Place, width: int, situation: Situation, tab: Tab) -> None:
    tab.resize(width)
    place.visit(tab, situation)
    tab.evaluate(STOP_TIMERS)
    targets, reached, unseen = tab.evaluate(TARGETS), [], []
    assert targets
    for _ in range(200):
        tab.do(lambda page: page.keyboard.press("Tab"))
        at, is_seen = tab.evaluate(FOCUSED)
        if at in reached:
            break
        if at >= 0:
            reached.append(at)
            unseen += [] if is_seen else [targets[at]]
    assert not [each for at, each in enumerate(targets) if at not in reached]
    # The first one may have the focus from the beginning, and comes last then.
    first = reached.index(0)
    assert reached[first:] + reached[:first] == [*range(len(targets))]
    assert not unseen, "\n".join(unseen)
