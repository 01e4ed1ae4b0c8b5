"""Each thing that can be done needs a permission of its own; to look needs only that of looking."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission

from steady_queue_core import Batch
from steady_queue_core.models import (
    FailedExecution,
    Job,
    JobBatch,
    Pause,
    ReadyExecution,
    RecurringTask,
    ScheduledExecution,
    Share,
)

from ..app.tasks import noop
from .places import HOUR, Scene
from .visitor import Visitor

pytestmark = pytest.mark.django_db

VIEW = {
    "job": "view_job",
    "pause": "view_queue",
    "process": "view_process",
    "processend": "view_processend",
    "recurringtask": "view_recurringtask",
    "rate": "view_rate",
    "semaphore": "view_semaphore",
    "jobbatch": "view_jobbatch",
    "share": "view_share",
}
#: Those for weights of keys.
WEIGHTS = ("add_share", "change_share", "delete_share")
#: Those for recurring tasks that are added at run time.
SCHEDULES = ("add_recurringtask", "delete_recurringtask")
#: Those that have tests of their own.
OTHERS = ("view_overview", "view_arguments")
#: Page, action of its list, verb of its page, and the permission for both.
ACTIONS = [
    ("job", "retry", "retry", "retry_job"),
    ("job", "run_now", "run", "run_job"),
    ("job", "move", "move", "change_job"),
    ("job", "reschedule", "reschedule", "change_job"),
    ("job", "enqueue_again", "copy", "enqueue_job"),
    ("job", "cancel", "cancel", "cancel_job"),
    ("job", "discard", "discard", "discard_job"),
    ("pause", "pause", "pause", "pause_queue"),
    ("pause", "resume", "resume", "pause_queue"),
    ("pause", "clear", "clear", "discard_job"),
    ("recurringtask", "run_now", "run", "run_recurringtask"),
    ("recurringtask", "disable", "disable", "change_recurringtask"),
    ("recurringtask", "enable", "enable", "change_recurringtask"),
    ("jobbatch", "cancel", "cancel", "cancel_batch"),
    ("jobbatch", "retry", "retry", "retry_batch"),
]


#: What a confirmation says, with what some forms ask for.
YES = {"confirmed": "yes", "act-queue_name": "other", "act-delay": "0:30:00"}


def prepare(scene: Scene, action: str, model: str) -> tuple[Any, dict[str, str]]:
    """Have something that the action can be done to; return its key and the list's filter."""
    if model == "job":
        if action == "retry":
            return scene.failed(1)[0], {"state": "failed"}
        return scene.ready(1, "mail", delay=HOUR)[0], {"state": "scheduled"}
    if model == "pause":
        scene.ready(1, "mail")
        if action == "resume":
            Pause.objects.create(queue_name="mail", created_at="2026-01-01T00:00:00Z")
        return "mail", {}
    if model == "share":
        return Share.objects.create(queue_name="mail", key="a", weight=2).pk, {}
    if model == "jobbatch":
        with Batch("rows") as batch:
            noop.enqueue()
        if action == "retry":
            batch.cancel()
        return batch.id, {}
    row = RecurringTask.objects.create(
        key="daily", task_path="tests.app.tasks.noop", schedule="0 6 * * *", timezone="UTC",
        arguments='{"args":[],"kwargs":{}}', backend_name="default", queue_name="default",
        enabled=action != "enable", static=False,
        created_at="2026-01-01T00:00:00Z", updated_at="2026-01-01T00:00:00Z",
    )  # fmt: skip
    return row.pk, {}


def state(scene: Scene) -> Any:
    """Return all that the actions change."""
    models = (Job, ReadyExecution, ScheduledExecution, FailedExecution, Pause)
    rows = RecurringTask.objects.values_list("key", "enabled")
    jobs = Job.objects.values_list("queue_name", "scheduled_at").order_by("pk")
    batches = JobBatch.objects.values_list("finished_at", "cancelled_at")
    return [scene.ids(model) for model in models], list(rows), list(batches), list(jobs)


def test_the_permissions_are_these() -> None:
    offered = Permission.objects.filter(content_type__app_label="steady_queue")
    assert sorted(offered.values_list("codename", flat=True)) == sorted(
        {
            *VIEW.values(),
            *WEIGHTS,
            *SCHEDULES,
            "view_overview",
            "view_arguments",
            *(codename for *_, codename in ACTIONS),
        }
    )


@pytest.mark.parametrize(("model", "action", "verb", "codename"), ACTIONS)
def test_an_action_needs_its_permission(
    model: str, action: str, verb: str, codename: str, scene: Scene
) -> None:
    key, query = prepare(scene, action, model)
    others = {each for *_, each in ACTIONS} - {codename}
    before = state(scene)

    outsider = Visitor(VIEW[model], *others)
    page = outsider.list(model, **query)
    assert action not in page.actions
    outsider.act(action, [key], model, **query)
    outsider.act(action, ..., model, **query)
    assert outsider.post(outsider.url(model, verb, key), YES).status == 403
    label = {"run": "Run now", "copy": "Enqueue again"}.get(verb, verb.capitalize())
    assert label not in outsider.see(outsider.url(model, "change", key)).buttons
    blind = Visitor(codename)
    assert blind.post(blind.url(model, verb, key), YES).status == 403
    assert state(scene) == before

    insider = Visitor(VIEW[model], codename)
    assert action in insider.list(model, **query).actions
    assert label in insider.see(insider.url(model, "change", key)).buttons
    page = insider.post(insider.url(model, verb, key), YES)
    assert page.status == 200
    assert state(scene) != before


@pytest.mark.parametrize(("model", "action", "verb", "codename"), ACTIONS)
def test_an_action_on_a_list_works_with_its_permission(
    model: str, action: str, verb: str, codename: str, scene: Scene
) -> None:
    key, query = prepare(scene, action, model)
    before = state(scene)
    insider = Visitor(VIEW[model], codename)
    page = insider.act(action, [key], model, **query)
    asks = ("move", "reschedule", "enqueue_again", "cancel", "discard", "clear")
    if action in asks or model == "jobbatch":
        assert state(scene) == before
        page = insider.post(insider.url(model), page.answer() | YES, **query)
    assert page.messages
    assert state(scene) != before


@pytest.mark.parametrize("model", VIEW)
def test_who_may_only_look_gets_no_buttons(model: str, scene: Scene) -> None:
    key, _ = prepare(scene, "discard", model if model != "process" else "job")
    key = scene.worker.id if model == "process" else key
    visitor = Visitor(VIEW[model])
    page = visitor.list(model)
    assert page.status == 200
    assert page.actions == []
    assert "addlink" not in page.source
    if model not in ("rate", "semaphore", "processend"):
        page = visitor.see(visitor.url(model, "change", key))
        assert page.status == 200
        assert page.buttons == []
    assert visitor.see(visitor.url(model, "add")).status == 403
    assert visitor.see(visitor.url(model, "delete", key)).status == 403


@pytest.mark.parametrize("model", VIEW)
def test_who_may_not_look_sees_nothing(model: str, scene: Scene) -> None:
    key, _ = prepare(scene, "discard", model if model != "process" else "job")
    others = {*VIEW.values()} - {VIEW[model]}
    visitor = Visitor(*others, "pause_queue", "retry_job", "run_recurringtask")
    assert visitor.list(model).status == 403
    assert visitor.see(visitor.url(model, "change", key)).status == 403
    index = visitor.see("/admin/")
    assert visitor.url(model) not in index.source
    assert all(visitor.url(each) in index.source for each in VIEW if each != model)


def test_arguments_and_results_need_a_permission_of_their_own(scene: Scene) -> None:
    call = '{"args":["for your eyes only"],"kwargs":{}}'
    [job] = scene.finished(1, arguments=call, task_path="tests.app.tasks.add")
    Job.objects.filter(pk=job).update(return_value='"what came of it"')
    url = Visitor("view_job").url("job", "change", job)
    page = Visitor("view_job").see(url)
    assert "eyes" not in page
    assert "came of it" not in page
    page = Visitor("view_job", "view_arguments").see(url)
    assert "'for your eyes only'" in page
    assert "'what came of it'" in page
