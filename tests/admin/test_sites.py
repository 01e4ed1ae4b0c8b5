"""The pages on any admin site, and for any database."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import override_settings

from steady_queue_core import Batch
from steady_queue_core.models import Job, Pause, ReadyExecution

from ..app.tasks import noop
from ..servers.kinds import KINDS
from .places import HOUR, Scene, tasks_in
from .visitor import EVERYTHING, Visitor


@pytest.mark.django_db
def test_a_site_of_the_projects_own_has_the_same_pages(scene: Scene) -> None:
    [failed] = scene.failed(1)
    scene.blocked(1), scene.ready(1, "mail")
    visitor = Visitor(*EVERYTHING, site="operations")
    pages = [visitor.see("/operations/"), visitor.list(state="failed"), visitor.list("pause")]
    pages.append(visitor.see(visitor.url("job", "change", failed)))
    page = visitor.act("retry", [failed], state="failed")
    assert page.messages == ["Retried 1 job."]
    page = visitor.post(visitor.url("job", "discard", failed), {"confirmed": "yes"})
    assert page.messages == [f"Discarded job #{failed}."]
    for each in [*pages, page]:
        assert each.status == 200
        assert "/operations/steady_queue/" in each.source
        assert "/admin/steady_queue/" not in each.source


def two_databases(alias: str) -> Any:
    mark = pytest.mark.django_db(databases=["default", alias], transaction=True)
    return pytest.param(alias, marks=mark, id=alias)


@pytest.mark.parametrize("other", [two_databases(alias) for alias in KINDS])
def test_each_of_several_databases_is_looked_after(other: str, settings: Any) -> None:
    settings.TASKS = tasks_in("default", other)
    here, there = Scene("default"), Scene(other)
    here.ready(2, "here"), there.ready(3, "there")
    failed = there.failed(2, queue_name="there")
    [scheduled] = there.ready(1, "there", delay=HOUR)
    with Batch("there", backend=other) as batch:
        noop.using(backend=other, queue_name="batch").enqueue()
    visitor, given = Visitor(*EVERYTHING), Visitor(*EVERYTHING, database=other)

    assert "All 2 Ready 2" in visitor.list()
    page = given.list()
    assert "All 7 Ready 4" in page
    assert f"By database default {other}" in page
    # Every link of the pages stays with the database.
    page = given.see(given.url("job") + page.link("Failed"))
    assert sorted(page.ids) == failed
    assert re.search(rf'/job/{failed[1]}/change/\?[^"]*database={other}["&]', page.source)
    assert given.act("retry", failed[:1], state="failed").messages == ["Retried 1 job."]
    assert given.list("pause").text.count("there open 4") == 1
    given.act("pause", ["there"], "pause")
    assert Pause.objects.using(other).filter(pk="there").exists()
    page = given.post(given.url("job", "run", scheduled))
    assert page.messages == [f"Dispatched job #{scheduled}."]
    assert f"?database={other}" in page.source
    page = given.post(given.url("job", "discard", failed[1]), {"confirmed": "yes"})
    assert page.messages == [f"Discarded job #{failed[1]}."]
    assert "Running 0" in given.list("job", queue="there")

    page = given.list("jobbatch")
    assert page.ids == [batch.id]
    assert re.search(rf'/jobbatch/{batch.id}/change/\?[^"]*database={other}["&]', page.source)
    page = given.see(given.url("jobbatch", "change", batch.id))
    for url in re.findall(r'href="([^"]+/change/[^"]*)"', page.source):
        assert f"database={other}" in url
    assert "database=" in page.link("Pending")
    page = given.post(given.url("jobbatch", "cancel", batch.id), {"confirmed": "yes"})
    assert page.messages == [f"Cancelled batch #{batch.id}."]
    assert visitor.list("jobbatch").ids == []
    assert here.ids(Job) == here.ids(ReadyExecution)
    assert not Pause.objects.exists()
    assert LogEntry.objects.count() == 5
    with override_settings(TASKS=tasks_in("default")):
        assert "All 2 Ready 2" in given.list()


@pytest.mark.django_db
def test_tasks_that_are_misconfigured_break_no_page(settings: Any) -> None:
    visitor = Visitor(*EVERYTHING)
    settings.TASKS = {"default": {"BACKEND": "no.such.Backend"}}
    settings.STEADY_QUEUE = {"process_alive_threshold": "long"}
    Scene("default").ready(1)
    models = ("job", "pause", "process", "rate", "recurringtask", "semaphore", "jobbatch", "share")
    for model in (*models, "overview"):
        assert visitor.list(model).status == 200
