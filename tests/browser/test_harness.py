"""The tools of these tests find what they are there to find."""

from __future__ import annotations

import time

import pytest
from django.urls import reverse

from .audit import COLOURS, audit
from .engine import PATIENCE
from .policy import POLICY
from .tab import NARROW, Tab

pytestmark = [pytest.mark.django_db(transaction=True)]
#: Where a page of a test is shown instead of an answer of the server.
ADDRESS = "**/of-a-test/"


def show(tab: Tab, body: str) -> None:
    """Show a page with this body, under the policy."""
    headers = {"Content-Security-Policy": POLICY, "Content-Type": "text/html"}
    source = f"<!doctype html><html lang=en><title>Of a test</title><body><main>{body}</main>"
    tab.do(lambda page: page.route(ADDRESS, lambda to: to.fulfill(body=source, headers=headers)))
    tab.open("/of-a-test/")
    tab.do(lambda page: page.unroute(ADDRESS))


def wait_told(tab: Tab, said: str) -> None:
    """Wait until this is noted: a browser tells of what goes wrong when it has the time."""
    troubles: list[str] = []
    deadline = time.monotonic() + PATIENCE
    while not any(said in each for each in troubles):
        assert time.monotonic() < deadline, troubles
        troubles += tab.take_troubles()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<p style='color: red'>x</p>", "style-src"),
        ("<script>1</script>", "script-src"),
        # Since version 150, Chromium tells of a handler when its event happens, not before.
        ("<details open ontoggle='1'>x</details>", "script-src"),
        ("<img alt=x src='/missing.png'>", "404"),
        ("<img alt=x src='http://127.0.0.1:9/x.png'>", "default-src"),
    ],
)
def test_what_goes_wrong_is_noted(tab: Tab, body: str, said: str) -> None:
    show(tab, body)
    wait_told(tab, said)
    show(tab, "<h1>Well</h1>")
    assert tab.take_troubles() == []


def test_a_handler_in_an_attribute_is_named(tab: Tab) -> None:
    show(tab, "<h1>Well</h1>")
    assert tab.handlers == []
    show(tab, "<p onclick='1'>x</p>")
    assert tab.handlers == ['a handler: <p onclick="1">x</p>']


def test_an_error_of_a_script_is_noted(tab: Tab) -> None:
    show(tab, "<h1>Well</h1>")
    tab.evaluate("void setTimeout(() => { throw new Error('oh') })")
    wait_told(tab, "uncaught: oh")


def test_what_sticks_out_is_named(tab: Tab) -> None:
    tab.resize(NARROW)
    show(tab, f"<p><b>{'W' * 200}</b></p>")
    assert any("WWW" in each for each in tab.sticking_out)
    show(tab, "<h1>Well</h1>")
    assert tab.sticking_out == []


def test_what_cannot_be_read_is_named(tab: Tab) -> None:
    show(tab, "<h1><font color=#eeeeee>pale</font></h1><img src=x>")
    assert [each.partition(":")[0] for each in audit(tab, *COLOURS)] == ["color-contrast"]
    assert {"color-contrast", "image-alt"} <= {each.partition(":")[0] for each in audit(tab)}


def test_without_javascript_no_script_of_a_page_runs(tab: Tab, plain_tab: Tab) -> None:
    for each, is_hidden in ((tab, False), (plain_tab, True)):
        each.open(reverse("admin:steady_queue_overview_changelist"))
        assert each.evaluate("document.querySelector('#sq-refresh').hidden") is is_hidden
