"""Every page of the admin, in a browser."""

from __future__ import annotations

import pytest
from django.contrib.admin import site as default_site
from django.urls import get_resolver

from ..admin.visitor import EVERYTHING, Visitor
from .audit import COLOURS, SIZES, audit
from .site import Site
from .situation import Situation, history_of
from .tab import NARROW, WIDE, Tab
from .walk import NO_PAGES, PLACES, Place, keys_of_rows

# Nothing is stored but by the fixtures, which all tests share.
pytestmark = [pytest.mark.shared, pytest.mark.django_db]
on_every_page = pytest.mark.parametrize("place", PLACES, ids=str)


@pytest.fixture(scope="module")
def visitor(site: Site) -> Visitor:
    return Visitor(*EVERYTHING)


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
    found += audit(tab, *SIZES)
    tab.darken()
    found += [f"dark: {each}" for each in audit(tab, *COLOURS)]
    tab.darken(False)
    tab.resize(WIDE)
    found += audit(tab)
    assert not found, "\n".join(found)


@on_every_page
def test_a_page_needs_no_scripts(place: Place, situation: Situation, plain_tab: Tab) -> None:
    found = _walk(plain_tab, place, situation)
    assert not found, "\n".join(found)


def _walk(tab: Tab, place: Place, situation: Situation) -> list[str]:
    """Go to a page and make it narrow; return what is wrong there."""
    tab.resize(WIDE)
    place.visit(tab, situation)
    found = tab.take_troubles() + tab.sticking_out
    tab.resize(NARROW)
    return found + tab.take_troubles() + tab.sticking_out


def test_every_page_is_walked() -> None:
    names = {
        str(name)
        for name in get_resolver().namespace_dict["admin"][1].reverse_dict
        if str(name).startswith("steady_queue_")
    }
    assert names == {place.route for place in PLACES} | NO_PAGES.keys()
