"""The page of error groups, and the list of the jobs of one."""

from __future__ import annotations

import html
import re
from typing import Any
from unittest import mock

import pytest
from django.contrib.admin import AdminSite
from django.contrib.admin import site as default_site
from django.db import connections
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from steady_queue_core.admin import JobAdmin
from steady_queue_core.conformance.base import ending
from steady_queue_core.dialects import Ending
from steady_queue_core.fingerprint import fingerprint_of
from steady_queue_core.listings import error_groups
from steady_queue_core.models import FailedExecution, Job, ReadyExecution

from .places import Scene, on_every_database, tasks_in
from .test_actions import log
from .test_hostile import NASTY
from .visitor import EVERYTHING, Page, Visitor

VALUE, TASK = "builtins.ValueError", "shop.tasks.send"


def fail(scene: Scene, message: str, *, task: str = TASK, queue: str = "mail") -> int:
    """Let one job fail."""
    [claim] = scene.claimed(1, queue_name=queue, task_path=task)
    known = {"exception_class": VALUE, "message": message}
    outcome = ending(Ending.FAILED, claim, attempts=1, fingerprint=group_of(message, task), **known)
    assert scene.dialect.settle(scene.connection, [outcome])
    return claim.job_id


def group_of(message: str, task: str = TASK) -> str:
    return fingerprint_of(VALUE, message, task)


def groups(visitor: Visitor, **query: Any) -> Page:
    return visitor.see(visitor.url("job", "errors"), **query)


def buttons(page: Page) -> list[tuple[str, str]]:
    """Return the labels of the buttons, and where they lead."""
    found = re.findall(r'<button[^>]* formaction="([^"]*)">([^<]*)<', page.source)
    return [(label, html.unescape(url)) for url, label in found]


@on_every_database
def test_failures_are_shown_by_their_cause_and_retried_together(using: str, scene: Scene) -> None:
    orders = [fail(scene, f"no order {number}") for number in (1, 2, 3)]
    other = fail(scene, "no customer 7", task="shop.tasks.bill")
    visitor = Visitor(*EVERYTHING)

    listed = visitor.list(state="failed")
    page = visitor.see(listed.link("Error groups"))
    assert page.status == 200
    assert page.text.index("ValueError: no order 3") < page.text.index("ValueError: no customer 7")
    assert f"{TASK} 3 " in page
    (label, url), (label_of_other, _) = buttons(page)
    assert (label, label_of_other) == ("Retry all 3", "Retry all 1")

    shown = visitor.see(page.link("ValueError: no order 3"))
    assert shown.ids == orders[::-1]
    assert group_of("no order 1") in shown
    assert "error=" not in shown.link("Ready")

    question = visitor.post(url, page.answer())
    assert "Retry 3 failed jobs?" in question
    assert scene.ids(ReadyExecution) == []
    assert visitor.see(question.link("No, take me back")).ids == orders[::-1]
    done = visitor.post(url, question.answer())
    assert done.messages == ["Retried 3 jobs."]
    assert scene.ids(ReadyExecution) == orders
    assert scene.ids(FailedExecution) == [other]
    assert [each[1:] for each in log()] == [(f"#{each}", "Retried") for each in orders]
    assert [label for label, _ in buttons(groups(visitor))] == ["Retry all 1"]


@on_every_database
def test_the_page_of_a_job_leads_to_its_group(using: str, scene: Scene) -> None:
    first, second = fail(scene, "no order 1"), fail(scene, "no order 2")
    fail(scene, "no customer")
    visitor = Visitor("view_job")
    page = visitor.see(visitor.url("job", "change", first))
    assert visitor.see(page.link(group_of("no order 1"))).ids == [second, first]
    FailedExecution.objects.using(using).update(fingerprint=None)
    assert "Group" not in visitor.see(visitor.url("job", "change", first))


@on_every_database
def test_it_can_be_of_a_queue_or_a_task(using: str, scene: Scene) -> None:
    mine, other = fail(scene, "no order 1"), fail(scene, "no order 2", queue="other")
    fail(scene, "no customer", task="shop.tasks.bill", queue="other")
    visitor = Visitor(*EVERYTHING)
    page = visitor.see(visitor.list(state="failed", queue="other").link("Error groups"))
    assert "Queue: other." in page
    assert [label for label, _ in buttons(page)] == ["Retry all 1", "Retry all 1"]
    assert visitor.see(page.link("ValueError: no order 2")).ids == [other]
    [(_, url)] = buttons(groups(visitor, queue="other", task=TASK))
    confirm_page = visitor.post(url, groups(visitor).answer())
    assert "Retry 1 failed jobs?" in confirm_page
    visitor.post(url, confirm_page.answer())
    assert scene.ids(ReadyExecution) == [other]
    assert mine in scene.ids(FailedExecution)
    assert len(buttons(visitor.see(page.link("All failed jobs")))) == 2
    assert groups(visitor, queue="a\0").status == 404


@pytest.mark.django_db(transaction=True)
def test_what_was_not_looked_at_is_said(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor = Visitor("view_job")
    assert "There are no failed jobs." in groups(visitor)
    fail(scene, "no customer")
    for _ in range(3):
        fail(scene, "no order")
    FailedExecution.objects.filter(pk=fail(scene, "of old")).update(fingerprint=None)
    page = groups(visitor)
    assert "1 more failed job belongs to no group." in page
    monkeypatch.setattr("steady_queue_core.admin.error_groups.MOST_GROUPS", 1)
    assert "There are more groups, none of them larger." in groups(visitor)
    monkeypatch.setattr(error_groups, "CAP", 2)
    page = groups(visitor)
    assert "2+" in page
    assert "Only the 10,000 newest failures were looked at." in page


@pytest.mark.django_db(transaction=True)
def test_to_see_and_to_retry_need_permissions(scene: Scene) -> None:
    job = fail(scene, "no order")
    outsider = Visitor("retry_job")
    assert groups(outsider).status == 403
    reader = Visitor("view_job", "discard_job")
    page = groups(reader)
    assert "no order" in page
    assert buttons(page) == []
    [(_, url)] = buttons(groups(Visitor("view_job", "retry_job")))
    for visitor in (outsider, reader):
        for more in ({}, {"confirmed": "yes"}):
            visitor.post(url, groups(Visitor(*EVERYTHING)).answer() | more)
    assert scene.ids(FailedExecution) == [job]
    assert reader.post(reader.url("job", "errors")).status == 405
    assert reader.client.head(reader.url("job", "errors")).status_code == 200
    reader.client.logout()
    assert reader.client.get(reader.url("job", "errors")).status_code == 302


class OurJobs(JobAdmin):
    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).filter(queue_name__startswith="ours")


@on_every_database
def test_jobs_that_a_user_may_not_see_do_not_count(using: str, scene: Scene) -> None:
    for number in (1, 2):
        fail(scene, f"no order {number}", queue="ours")
    fail(scene, "no order 3")
    fail(scene, "no customer")
    page = OurJobs(Job, default_site)
    visitor = Visitor(*EVERYTHING)
    with mock.patch.dict(default_site._registry, {Job: page}):
        shown = groups_of(page, visitor)
    assert [label for label, _ in buttons(shown)] == ["Retry all 2"]
    assert "no order 2" in shown
    assert "no customer" not in shown


def groups_of(page: JobAdmin, visitor: Visitor) -> Page:
    """Return the page of a subclass, as the visitor sees it."""
    request = RequestFactory().get("/")
    request.user = visitor.user
    assert isinstance(page.admin_site, AdminSite)
    response: Any = page.errors_view(request)
    return Page(response.render())


@on_every_database
def test_whatever_is_stored_is_shown_as_text(using: str, scene: Scene) -> None:
    job = fail(scene, NASTY, task=f"shop.{NASTY}"[:255])
    rows = FailedExecution.objects.using(using)
    rows.update(exception_class=NASTY, message=NASTY + "\n" + "x" * 100_000)
    visitor = Visitor(*EVERYTHING)
    page = groups(visitor)
    assert page.status == 200
    assert "<script>alert" not in page.source
    assert not {"\x1b", "\u202e"} & {*page.text}
    assert len(page.source) < 30_000
    assert visitor.see(page.link("Failed jobs one by one")).ids == [job]
    rows.update(fingerprint="<script>alert")
    detail = visitor.see(visitor.url("job", "change", job))
    assert groups(visitor).status == detail.status == 200
    assert "Group" not in detail
    for forged in ("<script>alert(1)", "'", "\u202e", "x" * 10_000):
        listed = visitor.list(state="failed", error=forged)
        assert listed.ids == []
        assert "<script>alert" not in listed.source


@pytest.mark.django_db(transaction=True)
def test_it_needs_neither_scripts_nor_styles_of_its_own(scene: Scene) -> None:
    fail(scene, "no order")
    content = groups(Visitor(*EVERYTHING)).source.partition('<div id="content"')[2]
    assert not re.search(r"<script(?! src=)|<style| style=| on\w+=|javascript:", content)


@pytest.mark.django_db(transaction=True)
def test_its_breadcrumbs_are_those_of_this_django(scene: Scene) -> None:
    visitor = Visitor(*EVERYTHING)
    pattern = re.compile(r'<(\w+) class="breadcrumbs">')
    page = groups(visitor)
    assert pattern.findall(page.source) == pattern.findall(visitor.list().source) != []


@on_every_database
def test_it_makes_no_more_than_a_dozen_queries(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        fail(scene, f"no order {number}", task=f"shop.tasks.t{number % 7}")
    monkeypatch.setattr(error_groups, "CAP", 20)
    monkeypatch.setattr(error_groups, "MOST_LOOKED_UP", 5)  # As many parts as of 10,000.
    visitor = Visitor(*EVERYTHING)
    for query in ({}, {"queue": "mail"}):
        with (
            CaptureQueriesContext(connections[using]) as ours,
            CaptureQueriesContext(connections["default"]) as theirs,
        ):
            assert groups(visitor, **query).status == 200
        made = len(theirs) + (len(ours) if using != "default" else 0)
        assert made <= 12, [each["sql"] for each in ours.captured_queries]


@pytest.mark.django_db(databases=["default", "postgres"], transaction=True)
def test_of_several_databases_it_shows_the_one_that_is_asked_for(settings: Any) -> None:
    settings.TASKS = tasks_in("default", "postgres")
    here, there = Scene("default"), Scene("postgres")
    fail(here, "here")
    job = fail(there, "there")
    visitor = Visitor(*EVERYTHING)
    page = visitor.see(visitor.list(state="failed", database="postgres").link("Error groups"))
    assert "there" in page
    [(_, url)] = buttons(page)
    question = visitor.post(url, page.answer())
    visitor.post(url, question.answer())
    assert there.ids(ReadyExecution) == [job]
    assert len(here.ids(FailedExecution)) == 1
