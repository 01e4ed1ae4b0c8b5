"""What has become of the runs of recurring tasks, in their list and on their pages."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin import AdminSite
from django.test import RequestFactory

from steady_queue_core.admin import JobAdmin, RecurringTaskAdmin
from steady_queue_core.dialects import portable
from steady_queue_core.dynamic_tasks import schedule_recurring_task
from steady_queue_core.models import Job, RecurringExecution, RecurringTask

from ..app.tasks import noop
from .places import HOUR, Scene, on_every_database
from .visitor import Visitor


def runs(scene: Scene, key: str, *job_ids: int | None) -> None:
    """Have had a run of each job, the last one last."""
    present = scene.present(scene.using)
    for number, job_id in enumerate(job_ids, start=1):
        at = portable.storable(present - HOUR + timedelta(minutes=number))
        RecurringExecution.objects.using(scene.using).create(
            task_key=key, run_at=at, job_id=job_id, created_at=at
        )


@on_every_database
def test_each_run_tells_its_outcome(using: str, scene: Scene) -> None:
    [finished], [failed] = scene.finished(), scene.failed()
    [claim] = scene.claimed()
    [blocked], [later] = scene.blocked(), scene.ready(delay=HOUR)
    [ready] = scene.ready()
    ids = (finished, failed, claim.job_id, blocked, later, ready, 10**6, None)
    schedule_recurring_task("all", noop, schedule="0 6 * * *")
    runs(scene, "all", *ids)
    for number, job_id in enumerate(ids):
        schedule_recurring_task(f"task-{number}", noop, schedule="0 6 * * *")
        runs(scene, f"task-{number}", job_id)
    words = [
        "finished", "failed", "running", "blocked", "scheduled", "waiting", "job no longer kept",
        "not enqueued",
    ]  # fmt: skip

    visitor = Visitor("view_recurringtask")
    page = visitor.see(visitor.url("recurringtask", "change", "all"))
    table = page.text.partition("Due at Job Outcome Duration")[2]
    found = re.findall("|".join(words), table)
    assert found == words[::-1]
    assert re.search(rf"#{finished} finished \d+ m?s", table)
    assert re.search(rf"#{claim.job_id} running \d+ m?s", table)

    source = visitor.list("recurringtask").source
    cells = re.findall(r'<td class="field-last_outcome">(.*?)</td>', source)
    assert len(cells) == 9
    for cell, word in zip(cells[1:], words, strict=True):
        assert cell.startswith(word)


@pytest.mark.django_db(transaction=True)
def test_of_jobs_that_a_user_may_not_see_nothing_is_told(scene: Scene, rf: RequestFactory) -> None:
    [mine], [theirs] = scene.finished(), scene.failed()
    schedule_recurring_task("all", noop, schedule="0 6 * * *")
    runs(scene, "all", mine, theirs, 10**6)

    class Mine(JobAdmin):
        def get_queryset(self, request: Any) -> Any:
            return super().get_queryset(request).filter(pk=mine)

    site = AdminSite(name="narrow")
    site.register(Job, Mine)
    site.register(RecurringTask, RecurringTaskAdmin)
    page: Any = site._registry[RecurringTask]
    told = page._outcomes(rf.get("/"), RecurringExecution.objects.all())
    assert {each: told[each].words for each in (mine, theirs, 10**6)} == {
        mine: "finished", theirs: "", 10**6: "",
    }  # fmt: skip
