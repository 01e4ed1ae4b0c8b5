"""The overview refreshes itself, and disturbs nobody who reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import reverse

from ..admin.visitor import Visitor
from .engine import Engine
from .site import Site
from .situation import Situation
from .tab import NARROW, Tab

pytestmark = [pytest.mark.django_db(transaction=True)]
HIDE = """(hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


class Reader:
    """Somebody who looks at the overview, and has the browser's time in hand."""

    def __init__(self, tab: Tab) -> None:
        self.tab, self._asked = tab, 0
        tab.do(lambda page: page.on("request", self._note))
        tab.do(lambda page: page.clock.install(time=0))
        tab.do(lambda page: page.clock.pause_at(3600))
        self.open()

    def open(self) -> None:
        self.tab.open(reverse("admin:steady_queue_overview_changelist"))

    def waits(self, seconds: int) -> int:
        """Let so much time pass; return how often the browser asked for what is new."""
        before = self._asked
        self.tab.do(lambda page: page.clock.run_for(seconds * 1000))
        self.tab.evaluate("0")
        return self._asked - before

    def is_told(self, said: str) -> None:
        """Wait until the page has been refreshed and says so."""
        self.tab.do(lambda page: page.locator("#sq-status", has_text=said).wait_for())
        self.tab.evaluate("document.querySelector('#sq-status').textContent = ''")

    def sees(self, ready: int) -> None:
        """Wait until so many jobs are ready."""
        shown = re.compile(f"^{ready}$")
        self.tab.do(
            lambda page: page.locator(".sq-numbers div:first-child dd", has_text=shown).wait_for()
        )

    def _note(self, request: Any) -> None:
        self._asked += "fragment=1" in request.url


@pytest.fixture
def reader(engine: Engine, site: Site, visitor: Visitor, situation: Situation) -> Iterator[Reader]:
    situation.ready(2, "mail")
    tab = Tab(engine, site.origin)
    tab.sign_in(visitor)
    yield Reader(tab)
    assert not tab.take_troubles()
    tab.close()


def test_it_refreshes_itself(reader: Reader, situation: Situation) -> None:
    reader.sees(2)
    situation.ready(3, "mail")
    assert reader.waits(4) == 0
    assert reader.waits(1) == 1
    reader.is_told("Refreshed")
    reader.sees(5)
    assert reader.waits(5) == 1


def test_focus_and_places_are_kept(reader: Reader, situation: Situation) -> None:
    tab = reader.tab
    tab.resize(NARROW)
    tab.do(lambda page: page.get_by_role("link", name="mail", exact=True).focus())
    tab.evaluate("""() => {
        document.querySelector("[aria-labelledby=sq-queues].sq-wide").scrollLeft = 70;
        window.scrollTo(0, 300);
    }""")
    before = tab.evaluate(PLACE)
    situation.ready(3, "mail")
    reader.waits(5)
    reader.sees(5)
    assert tab.evaluate(PLACE) == before
    assert before == ["mail", 70, 300]


PLACE = """[document.activeElement.textContent,
    document.querySelector("[aria-labelledby=sq-queues].sq-wide").scrollLeft, window.scrollY]"""


def test_it_stops_while_nobody_sees_it(reader: Reader, situation: Situation) -> None:
    reader.tab.evaluate(HIDE, True)
    situation.ready(3, "mail")
    assert reader.waits(120) == 0
    reader.tab.evaluate(HIDE, False)
    reader.is_told("Refreshed")
    reader.sees(5)
    assert reader.waits(5) == 1


def test_the_interval_is_remembered(reader: Reader) -> None:
    def choose(label: str) -> None:
        reader.tab.do(lambda page: page.get_by_label("Refresh").select_option(label=label))

    choose("every 15 s")
    reader.open()
    assert reader.tab.evaluate("document.querySelector('#sq-refresh select').value") == "15"
    assert reader.waits(14) == 0
    assert reader.waits(1) == 1
    choose("off")
    reader.open()
    assert reader.waits(300) == 0


def test_a_session_that_has_ended_is_told(reader: Reader, visitor: Visitor) -> None:
    visitor.client.logout()
    reader.waits(5)
    reader.is_told("Signed out")


def test_filters_and_windows_need_no_scripts(any_tab: Tab, situation: Situation) -> None:
    situation.ready(1, "mail")
    situation.ready(1, "other")
    situation.sample(1, "mail", ready=1)
    any_tab.open(reverse("admin:steady_queue_overview_changelist"))
    for said in ("Ready 2", "Queues", "Tasks", "Running for longest", "Due next", "other"):
        assert said in any_tab.text
    any_tab.do(lambda page: page.get_by_role("combobox", name="Queue").select_option("mail"))
    any_tab.press("Show")
    assert any_tab.do(
        lambda page: page.locator("[data-part=queues] tbody th").all_inner_texts()
    ) == ["mail"]
    any_tab.follow("24 hours")
    assert "queue=mail" in any_tab.do(lambda page: page.url)
    any_tab.follow("Show all")
    assert "other" in any_tab.text
