"""Pages of subclasses that let a user see some rows and not others, or do something with some."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from django.contrib.admin import AdminSite
from django.contrib.admin import site as default_site
from django.contrib.admin.models import LogEntry
from django.db import connections
from django.db.models import Q
from django.test.utils import CaptureQueriesContext
from django.urls import path

from steady_queue_core import Batch, call, chain
from steady_queue_core.admin import (
    BatchAdmin,
    JobAdmin,
    ProcessAdmin,
    QueuesAdmin,
    RecurringTaskAdmin,
    SemaphoreAdmin,
)
from steady_queue_core.listings import job_listing
from steady_queue_core.models import (
    FailedExecution,
    Job,
    JobBatch,
    Pause,
    Process,
    ReadyExecution,
    RecurringTask,
    ScheduledExecution,
    Semaphore,
)

from ..app.tasks import noop
from .conftest import Show
from .places import HOUR, Scene, on_every_database
from .test_actions import confirm, log
from .test_lists import MOST_QUERIES, STATES, fill, recurring_tasks, walk
from .visitor import EVERYTHING, Visitor


class OurJobs(JobAdmin):
    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).filter(queue_name__startswith="ours")


class OurQueues(QueuesAdmin):
    def get_queue_names(self, request: Any, names: Any) -> list[str]:
        return [each for each in names if each.startswith("ours")]

    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).filter(queue_name__startswith="ours")


class OurProcesses(ProcessAdmin):
    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).filter(hostname="ours")


class OurSemaphores(SemaphoreAdmin):
    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).filter(key__startswith="ours")


class OurRecurringTasks(RecurringTaskAdmin):
    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).exclude(key="task0")


OURS: dict[Any, Any] = {
    Job: OurJobs,
    Pause: OurQueues,
    Process: OurProcesses,
    RecurringTask: OurRecurringTasks,
    Semaphore: OurSemaphores,
}


@pytest.fixture(autouse=True)
def _only_ours(show: Show) -> None:
    show(OURS)


def visitor(**query: str) -> Visitor:
    return Visitor(*EVERYTHING, site="narrowed", **query)


def two_tenants(scene: Scene) -> dict[str, dict[str, list[int]]]:
    """Have jobs in every state, of us and of others."""
    # Whatever is ready is claimed by the next that runs: those that wait come last.
    make: dict[str, Callable[[str], list[int]]] = {
        "failed": lambda owner: scene.failed(2, queue_name=owner),
        "finished": lambda owner: scene.finished(2, queue_name=owner),
        "running": lambda owner: [each.job_id for each in scene.claimed(2, queue_name=owner)],
        "blocked": lambda owner: scene.blocked(2, queue_name=owner),
        "waiting": lambda owner: scene.waiting(2, queue_name=owner),
        "scheduled": lambda owner: scene.ready(2, owner, delay=HOUR),
        "ready": lambda owner: scene.ready(2, owner),
    }
    jobs: dict[str, dict[str, list[int]]] = {"ours": {}, "theirs": {}}
    for state, having in make.items():
        for owner, found in jobs.items():
            found[state] = having(owner)
    return jobs


@on_every_database
def test_lists_tabs_and_searches_have_what_get_queryset_has(using: str, scene: Scene) -> None:
    jobs = two_tenants(scene)
    ours, theirs = jobs["ours"], jobs["theirs"]
    us = visitor()
    found = {state: sorted(us.list(state=state).ids) for state in STATES if state}
    assert found == ours
    page = us.list()
    assert sorted(page.ids) == sorted(each for ids in ours.values() for each in ids)
    assert "All 14 Ready 2 Scheduled 2 Blocked 2 Waiting 2 Running 2 Failed 2 Finished 2" in page
    assert "theirs" not in page.source
    for state, [mine, *_] in ours.items():
        assert us.list(state=state, q=mine).ids == [mine]
        assert us.list(state=state, q=theirs[state][0]).ids == []
        assert us.list(q=theirs[state][0]).ids == []
    assert us.list(state="ready", queue="theirs").ids == []
    assert sorted(us.list(state="blocked", key="account:7").ids) == ours["blocked"]
    assert us.list(task="conformance.tasks.work", queue="theirs").ids == []


@on_every_database
def test_pages_of_others_rows_are_not_there(using: str, scene: Scene) -> None:
    jobs = two_tenants(scene)
    recurring_tasks(scene, 2)
    Semaphore.objects.using(using).create(key="theirs", value=0, limit=1)
    us, anyone = visitor(), Visitor(*EVERYTHING)
    failed = jobs["theirs"]["failed"][0]
    anyone.post(anyone.url("job", "retry", failed))
    others = {
        "job": failed, "pause": "theirs", "process": scene.worker.id, "recurringtask": "task0",
        "semaphore": "theirs",
    }  # fmt: skip
    for model, key in others.items():
        assert anyone.see(anyone.url(model, "change", key)).status == 200
        for name in ("change", "history"):
            response = us.client.get(us.url(model, name, key))
            assert response.status_code == 302, (model, name)
    assert us.see(us.url("job", "history", jobs["ours"]["failed"][0])).status == 200
    assert "live" not in us.list("process")
    assert "theirs" not in us.list("semaphore").source
    assert "task0" not in us.list("recurringtask").source
    assert "task1" in us.list("recurringtask").source


@on_every_database
def test_actions_leave_others_rows_alone(using: str, scene: Scene) -> None:
    jobs = two_tenants(scene)
    ours, theirs = jobs["ours"], jobs["theirs"]
    recurring_tasks(scene, 2)
    us = visitor()
    for state, action in (("failed", "retry"), ("scheduled", "run_now"), ("ready", "discard")):
        both = [ours[state][0], theirs[state][0]]
        page = us.act(action, both, state=state)
        if action == "discard":
            page = confirm(us, page, us.url("job"), state=state)
        assert page.messages[0].endswith(" 1 job.")
        page = us.act(action, ..., state=state)
        confirm(us, page, us.url("job"), state=state)
        for verb in ("retry", "run", "cancel", "discard"):
            page = us.post(us.url("job", verb, theirs[state][0]), {"confirmed": "yes"})
            assert page.messages == [f"Job {theirs[state][0]} no longer exists."]
    left = {model: scene.ids(model) for model in (FailedExecution, ScheduledExecution)}
    assert left == {FailedExecution: theirs["failed"], ScheduledExecution: theirs["scheduled"]}
    assert {*theirs["ready"]} <= {*scene.ids(ReadyExecution)}
    assert not {*ours["ready"]} & {*scene.ids(Job)}

    us.act("pause", ["ours", "theirs"], model="pause")
    us.post(us.url("pause", "pause", "theirs"))
    us.act("pause", ..., model="pause")
    assert scene.ids(Pause) == ["ours"]
    us.post(us.url("pause", "clear", "theirs"), {"confirmed": "yes"})
    page = us.act("clear", ["theirs"], model="pause")
    us.post(us.url("pause"), {**page.answer(), "confirmed": "yes"})
    assert {*theirs["ready"]} <= {*scene.ids(ReadyExecution)}
    for chosen in (["task0", "task1"], ...):
        us.act("disable", chosen, model="recurringtask")
    us.post(us.url("recurringtask", "disable", "task0"))
    enabled = RecurringTask.objects.using(using).filter(enabled=True)
    assert [row.pk for row in enabled] == ["task0"]
    assert not LogEntry.objects.filter(object_repr__contains="theirs").exists()


@on_every_database
def test_what_other_pages_tell_of_jobs_is_of_those_that_get_queryset_has(
    using: str, scene: Scene, show: Show
) -> None:
    """Whoever may see all queues and processes sees no more of the jobs for that."""
    jobs = two_tenants(scene)
    Semaphore.objects.using(using).create(key="account:7", value=0, limit=1)
    show({Job: OurJobs})
    us = visitor()
    page = us.list("pause")
    assert "ours open 2" in page
    assert "theirs open 0" in page
    page = us.see(us.url("process", "change", scene.worker.id))
    for mine, other in zip(jobs["ours"]["running"], jobs["theirs"]["running"], strict=True):
        assert f"#{mine}" in page
        assert f"#{other}" not in page
    assert "Waiting jobs 2" in us.see(us.url("semaphore", "change", "account:7"))
    page = us.post(us.url("pause", "clear", "theirs"))
    assert "Discard 0 ready jobs of theirs?" in page
    confirm(us, page, us.url("pause", "clear", "theirs"))
    page = us.post(us.url("pause", "clear", "ours"))
    confirm(us, page, us.url("pause", "clear", "ours"))
    assert {*jobs["theirs"]["ready"]} <= {*scene.ids(ReadyExecution)}
    assert not {*jobs["ours"]["ready"]} & {*scene.ids(ReadyExecution)}


@on_every_database
def test_a_narrowed_list_looks_at_a_bounded_number_of_jobs(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_listing, "LOOKED_AT", 4)
    first, _, second = scene.ready(2, "ours"), scene.ready(9, "theirs"), scene.ready(1, "ours")
    us = visitor()
    assert walk(us, "Look further", state="ready") == [first, [], second, []]
    with CaptureQueriesContext(connections[using]) as captured:
        us.list(state="ready")
    made = [each["sql"] for each in captured if "steady_queue_" in each["sql"]]
    assert not [sql for sql in made if "LIMIT" not in sql and " IN (" not in sql and "UNION" in sql]


@on_every_database
def test_a_narrowed_page_makes_no_more_than_a_dozen_queries(using: str, scene: Scene) -> None:
    fill(scene)
    two_tenants(scene)
    us = visitor()
    urls = [us.url(model) for model in ("pause", "process", "recurringtask", "semaphore")]
    urls += [us.url("jobbatch"), f"{us.url('jobbatch')}?status=running"]
    urls += [f"{us.url('job')}?state={state}&task=no.such" for state in STATES]
    for url in urls:
        with (
            CaptureQueriesContext(connections["default"]) as own,
            CaptureQueriesContext(connections[using]) as theirs,
        ):
            assert us.see(url).status == 200
        made = own.captured_queries + (theirs.captured_queries if using != "default" else [])
        assert len(made) <= MOST_QUERIES, url


@pytest.mark.django_db
def test_a_queryset_may_do_more_than_filter(scene: Scene, show: Show) -> None:
    class Annotated(JobAdmin):
        def get_queryset(self, request: Any) -> Any:
            rows = super().get_queryset(request).select_related("failedexecution")
            one_of = Q(failedexecution__message="told") | Q(queue_name="ours")
            return rows.filter(one_of).distinct().order_by("queue_name")

    show({Job: Annotated})
    failed, ready, _ = scene.failed(2), scene.ready(1, "ours"), scene.ready(1, "theirs")
    us = visitor()
    assert sorted(us.list().ids) == [*failed, *ready]
    assert us.list(state="ready").ids == ready
    assert sorted(us.list(state="failed").ids) == failed
    assert us.see(us.url("job", "change", failed[0])).status == 200
    assert us.act("retry", failed, state="failed").messages == ["Retried 2 jobs."]


@pytest.mark.django_db
def test_nothing_is_seen_where_get_queryset_has_nothing(scene: Scene, show: Show) -> None:
    class Nothing(JobAdmin):
        def get_queryset(self, request: Any) -> Any:
            return super().get_queryset(request).none()

    show({Job: Nothing})
    two_tenants(scene)
    us = visitor()
    assert us.list().ids == us.list(state="failed").ids == []
    assert "All 0 Ready 0" in us.list()
    assert us.act("retry", scene.ids(FailedExecution), state="failed").messages[0] == (
        "Retried 0 jobs."
    )
    assert us.list("pause").status == us.list("process").status == 200


@pytest.mark.django_db
def test_permissions_are_asked_of_each_row(scene: Scene, show: Show) -> None:
    class Mine(JobAdmin):
        def has_view_permission(self, request: Any, obj: Any = None) -> bool:
            return obj is None or obj.queue_name != "hidden"

        def has_retry_permission(self, request: Any, obj: Any = None) -> bool:
            return obj is None or obj.queue_name == "ours"

        def has_view_arguments_permission(self, request: Any, obj: Any = None) -> bool:
            return obj is not None and obj.queue_name == "ours"

    class NoPause(QueuesAdmin):
        def has_pause_permission(self, request: Any, obj: Any = None) -> bool:
            return obj is None or obj.queue_name == "ours"

    class Fixed(RecurringTaskAdmin):
        def has_switch_permission(self, request: Any, obj: Any = None) -> bool:
            return obj is None or obj.key == "task1"

    show({Job: Mine, Pause: NoPause, RecurringTask: Fixed})
    recurring_tasks(scene, 2)
    [ours], [theirs] = scene.failed(1, queue_name="ours"), scene.failed(1, queue_name="theirs")
    [hidden] = scene.failed(1, queue_name="hidden")
    us = visitor()
    assert us.see(us.url("job", "change", ours)).buttons == ["Retry", "Discard"]
    assert us.see(us.url("job", "change", theirs)).buttons == ["Discard"]
    assert "Arguments" in us.see(us.url("job", "change", ours))
    assert "Arguments" not in us.see(us.url("job", "change", theirs))
    for name in ("change", "history"):
        assert us.see(us.url("job", name, hidden)).status == 403
    assert us.post(us.url("job", "retry", theirs)).status == 403
    assert us.post(us.url("job", "discard", hidden), {"confirmed": "yes"}).status == 403
    page = us.act("retry", [ours, theirs, hidden], state="failed")
    assert page.messages[0] == "Retried 1 job."
    assert scene.ids(FailedExecution) == sorted([theirs, hidden])

    us.act("pause", ["ours", "theirs"], model="pause")
    assert scene.ids(Pause) == ["ours"]
    assert us.see(us.url("pause", "change", "theirs")).buttons == ["Clear"]
    assert us.post(us.url("pause", "pause", "theirs")).status == 403
    us.act("disable", ["task0", "task1"], model="recurringtask")
    assert us.post(us.url("recurringtask", "disable", "task0")).status == 403
    assert us.see(us.url("recurringtask", "change", "task0")).buttons == ["Run now"]
    assert RecurringTask.objects.get(pk="task0").enabled
    assert not RecurringTask.objects.get(pk="task1").enabled
    assert log()


class OurBatches(BatchAdmin):
    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).filter(description__startswith="ours")


def two_batches() -> tuple[Any, Any]:
    """Have a batch of us with a job and a batch in it, and one of others with a job."""
    with Batch("ours") as ours:
        noop.using(queue_name="ours").enqueue()
        with Batch("theirs, in ours"):
            noop.using(queue_name="theirs").enqueue()
        noop.using(queue_name="theirs").enqueue()
    with Batch("theirs") as theirs:
        noop.using(queue_name="theirs").enqueue()
    return ours, theirs


@on_every_database
def test_batches_are_those_that_get_queryset_has(using: str, scene: Scene, show: Show) -> None:
    show({Job: OurJobs, JobBatch: OurBatches})
    ours, theirs = two_batches()
    us = visitor()
    page = us.list("jobbatch")
    assert page.ids == [ours.id]
    assert "theirs" not in page.source
    for query in ({"q": f"{theirs.id}"}, {"q": "theirs"}, {"kind": "group"}):
        assert us.list("jobbatch", **query).ids == []
    for name in ("change", "history"):
        assert us.client.get(us.url("jobbatch", name, theirs.id)).status_code == 302
    for verb in ("cancel", "retry"):
        page = us.post(us.url("jobbatch", verb, theirs.id), {"confirmed": "yes"})
        assert f"Batch {theirs.id} no longer exists." in page.messages
    for chosen in ([theirs.id], ...):
        question = us.act("cancel", chosen, "jobbatch")
        confirm(us, question, us.url("jobbatch"))
    assert Batch.get(theirs.id).status == "running"
    assert Batch.get(ours.id).status == "cancelled"


@on_every_database
def test_the_page_of_a_batch_names_only_what_the_user_may_see(
    using: str, scene: Scene, show: Show
) -> None:
    show({Job: OurJobs, JobBatch: OurBatches})
    ours, _ = two_batches()
    mine, *others = Job.objects.using(using).order_by("pk").values_list("pk", flat=True)
    us = visitor()
    page = us.see(us.url("jobbatch", "change", ours.id))
    assert f"#{mine} noop noop pending (hidden) pending (hidden) pending" in page
    assert not [each for each in others if f"#{each}" in page]
    assert "All 3 Pending 3" in page
    with CaptureQueriesContext(connections[using]) as captured:
        us.see(us.url("jobbatch", "change", ours.id))
    assert len(captured) <= 15


@pytest.mark.django_db
def test_permissions_for_batches_are_asked_of_each(scene: Scene, show: Show) -> None:
    class Mine(BatchAdmin):
        def has_view_permission(self, request: Any, obj: Any = None) -> bool:
            return obj is None or obj.description != "hidden"

        def has_cancel_permission(self, request: Any, obj: Any = None) -> bool:
            return obj is None or obj.description == "ours"

        def has_view_arguments_permission(self, request: Any, obj: Any = None) -> bool:
            return obj is not None and obj.description == "ours"

    show({JobBatch: Mine})
    made = {}
    for name in ("ours", "theirs", "hidden"):
        with Batch(name, metadata={"a": 1}) as made[name]:
            noop.enqueue()
    us = visitor()
    page = us.see(us.url("jobbatch", "change", made["ours"].id))
    assert page.buttons == ["Cancel", "Retry"]
    assert "Metadata" in page
    page = us.see(us.url("jobbatch", "change", made["theirs"].id))
    assert page.buttons == ["Retry"]
    assert "Metadata" not in page
    assert us.see(us.url("jobbatch", "change", made["hidden"].id)).status == 403
    for name in ("theirs", "hidden"):
        url = us.url("jobbatch", "cancel", made[name].id)
        assert us.post(url, {"confirmed": "yes"}).status == 403
    question = us.act("cancel", [each.id for each in made.values()], "jobbatch")
    page = confirm(us, question, us.url("jobbatch"))
    assert page.messages[0] == "Cancelled 1 batch."
    assert [str(Batch.get(each.id).status) for each in made.values()] == [
        "cancelled", "running", "running",
    ]  # fmt: skip


@pytest.mark.django_db
def test_a_site_may_leave_batches_out(scene: Scene, settings: Any) -> None:
    site = AdminSite(name="narrowed")
    urls: Any = ModuleType("urls")
    site.register(Job, JobAdmin)
    urls.urlpatterns = [path("admin/", default_site.urls), path("narrowed/", site.urls)]
    settings.ROOT_URLCONF = urls
    result = chain(call(noop), call(noop)).enqueue()
    us = visitor()
    assert f"#{result.id}" in us.list(state="waiting")
    for job in Job.objects.values_list("pk", flat=True):
        page = us.see(us.url("job", "change", job))
        assert f"Member of #{result.id}" in page
        assert "/jobbatch/" not in page.source
