"""Every page of the admin, in a browser."""

from __future__ import annotations

import pytest
from django.contrib.admin import site as default_site
from django.urls import get_resolver, reverse

from steady_queue_core.admin import texts

from ..admin.visitor import Visitor
from .audit import COLOURS, SIZES, audit
from .conftest import chief
from .site import Site
from .situation import LONG, Situation, history_of
from .tab import NARROW, WIDE, Tab
from .walk import NO_PAGES, PLACES, Place, keys_of_rows

# Nothing is stored but by the fixtures, which all tests share.
pytestmark = [pytest.mark.django_db]
#: How high the rows of a list are.
HEIGHTS = """[...document.querySelectorAll("#result_list tbody tr")]
    .map((each) => each.getBoundingClientRect().height)"""
#: How far a list can be scrolled to the right.
SCROLLS = """(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(
    document.querySelector("#result_list").parentElement)"""
#: Lists that need no scrolling at 1280 pixels.
WITHOUT_SCROLLING = (
    "jobs", "ready jobs", "scheduled jobs", "failed jobs", "finished jobs", "queues",
)  # fmt: skip
on_every_page = pytest.mark.parametrize("place", PLACES, ids=str)


@pytest.fixture(scope="module")
def visitor(site: Site) -> Visitor:
    return chief()


@pytest.fixture(scope="module")
def situation(site: Site, visitor: Visitor) -> Situation:
    situation = Situation("default").plant()
    models = {model._meta.model_name: model for model in default_site._registry}
    for name, key in keys_of_rows(situation.known).items():
        history_of(visitor.user, models[name], key)
    return situation


@on_every_page
def test_a_page_is_well(place: Place, situation: Situation, tab: Tab) -> None:
    found = _walk(tab, place, situation)
    assert not found, "\n".join(found)


@pytest.mark.thorough
@on_every_page
def test_a_page_is_accessible(place: Place, situation: Situation, tab: Tab) -> None:
    place.visit(tab, situation)
    found = audit(tab)
    assert not found, "\n".join(found)


@pytest.mark.thorough
@on_every_page
def test_a_page_is_well_in_the_dark_and_narrow(
    place: Place, situation: Situation, tab: Tab
) -> None:
    place.visit(tab, situation)
    tab.resize(NARROW)
    found = audit(tab, *SIZES)
    tab.darken()
    found += [f"dark: {each}" for each in audit(tab, *COLOURS)]
    tab.darken(False)
    tab.resize(WIDE)
    assert not found, "\n".join(found)


@pytest.mark.thorough
@on_every_page
def test_a_page_needs_no_scripts(place: Place, situation: Situation, plain_tab: Tab) -> None:
    found = _walk(plain_tab, place, situation)
    assert not found, "\n".join(found)


def _walk(tab: Tab, place: Place, situation: Situation) -> list[str]:
    """Go to a page and make it narrow; return what is wrong there."""
    tab.resize(WIDE)
    place.visit(tab, situation)
    found = tab.take_troubles() + tab.handlers + tab.sticking_out
    tab.resize(NARROW)
    return found + tab.take_troubles() + tab.sticking_out


@pytest.mark.parametrize("place", [each for each in PLACES if each.is_list], ids=str)
def test_a_row_of_a_list_takes_one_line_however_long_its_names(
    place: Place, situation: Situation, tab: Tab
) -> None:
    tab.resize(WIDE)
    place.visit(tab, situation)
    # An error may take a second line.
    most = 56 if place.query.get("state") == "failed" else 40
    heights = tab.evaluate(HEIGHTS)
    assert heights
    assert max(heights) <= most


@pytest.mark.parametrize(
    "place", [each for each in PLACES if each.title in WITHOUT_SCROLLING], ids=str
)
def test_no_column_is_pushed_out_by_long_names(
    place: Place, situation: Situation, tab: Tab
) -> None:
    tab.resize(WIDE)
    place.visit(tab, situation)
    assert tab.evaluate(SCROLLS) == 0


def test_what_is_cut_is_in_the_title(situation: Situation, tab: Tab) -> None:
    tab.open(f"{reverse('admin:steady_queue_job_changelist')}?state=failed")
    titles = tab.do(
        lambda page: [
            each.get_attribute("title") for each in page.locator(".field-queue span").all()
        ]
    )
    assert texts.clean(LONG) in titles


def test_a_traceback_is_copied_as_a_whole(situation: Situation, tab: Tab, plain_tab: Tab) -> None:
    address = reverse("admin:steady_queue_job_change", args=[situation.known["failed"]])
    plain_tab.open(address)
    assert not plain_tab.do(lambda page: page.get_by_text("Copy", exact=True).first.is_visible())
    tab.allow("clipboard-read", "clipboard-write")
    tab.open(address)
    button = tab.do(lambda page: page.get_by_role("button", name="Copy", exact=True).first)
    tab.do(lambda page: button.click())
    tab.do(lambda page: page.get_by_role("button", name="Copied", exact=True).wait_for())
    copied = tab.evaluate("navigator.clipboard.readText()")
    shown = tab.evaluate("""[...document.querySelector("[data-copy]").closest("details")
        .querySelectorAll("pre")].map((each) => each.textContent).join("\\n")""")
    assert copied == shown
    assert copied.startswith("Traceback")
    assert not tab.take_troubles()


def test_every_page_is_walked() -> None:
    names = {
        str(name)
        for name in get_resolver().namespace_dict["admin"][1].reverse_dict
        if str(name).startswith("steady_queue_")
    }
    assert names == {place.route for place in PLACES} | NO_PAGES.keys()
