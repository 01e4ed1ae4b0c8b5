"""Recurring tasks are added, changed and removed in the admin."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.db import connections

from steady_queue_core import recurring, task
from steady_queue_core.admin import RecurringTaskAdmin, schedule_forms
from steady_queue_core.dialects import portable
from steady_queue_core.dynamic_tasks import change_recurring_task, schedule_recurring_task
from steady_queue_core.errors import RecurringTaskError
from steady_queue_core.models import RecurringExecution, RecurringTask
from steady_queue_core.own_tasks import ACT_ON_LIST
from steady_queue_core.schedules import definition
from steady_queue_core.schedules.stored import definition_of
from steady_queue_core.tasks.registry import find_task

from ..app.tasks import noop
from .places import Scene, on_every_database
from .test_actions import confirm
from .visitor import EVERYTHING, Page, Visitor

PATH = "tests.app.tasks.noop"
RIGHTS = ("view_recurringtask", "add_recurringtask", "change_recurringtask", "delete_recurringtask")
PLAIN = {
    "key": "daily", "task": PATH, "schedule": "0 6 * * *", "timezone": "", "args": "",
    "kwargs": "", "queue_name": "", "priority": "", "description": "", "starts_at": "",
    "ends_at": "", "repeats": "", "catch_up": "skip", "overlap": "allow",
}  # fmt: skip


@task
def pay(account: int, token: str = "", *, note: str = "") -> None:
    """Pay."""


PAY = pay.module_path


def stored(using: str, key: str = "daily") -> RecurringTask:
    return RecurringTask.objects.using(using).get(pk=key)


def add(visitor: Visitor, button: str = "_save", **given: str) -> Page:
    return visitor.post(visitor.url("recurringtask", "add"), {**PLAIN, **given, button: "x"})


def fields(page: Page) -> dict[str, str]:
    """Return what the fields of a form hold."""
    found = dict(re.findall(r'<input[^>]*?name="(\w+)"[^>]*?value="([^"]*)"', page.source))
    selected = r'<select name="(\w+)".*?<option value="(\w+)" selected>'
    found |= dict(re.findall(selected, page.source, re.DOTALL))
    found |= dict(re.findall(r'<textarea name="(\w+)"[^>]*>\s*(.*?)</textarea>', page.source))
    names = re.findall(r'<(?:input|textarea|select)[^>]*?name="(\w+)"', page.source)
    given = {name: html.unescape(found.get(name, "")) for name in names}
    return {name: given[name] for name in given if name[0] != "_" and "csrf" not in name}


def edit(
    visitor: Visitor,
    key: str = "daily",
    button: str = "_save",
    page: Page | None = None,
    **given: Any,
) -> Page:
    url = visitor.url("recurringtask", "edit", key)
    return visitor.post(url, {**fields(page or visitor.see(url)), **given, button: "x"})


def remove(visitor: Visitor, *keys: str) -> Page:
    """Choose the action of the list for these, and say yes."""
    page = visitor.act("remove", keys, model="recurringtask")
    return confirm(visitor, page, visitor.url("recurringtask"))


def errors(page: Page) -> dict[str, str]:
    """Return what is refused, by field."""
    rows = re.findall(r'class="form-row errors field-(\w+)">(.*?)</ul>', page.source, re.DOTALL)
    found = {
        name: " ".join(html.unescape(re.sub("<[^>]*>", "", text)).split()) for name, text in rows
    }
    head = page.source.partition('<fieldset class="module aligned">')[0]
    for text in re.findall(r'<ul class="errorlist nonfield.*?</ul>', head, re.DOTALL):
        found[""] = " ".join(html.unescape(re.sub("<[^>]*>", "", text)).split())
    return found


@on_every_database
def test_a_task_is_added_changed_and_removed(using: str, scene: Scene) -> None:
    visitor = Visitor(*RIGHTS, "view_arguments")
    assert "addlink" in visitor.list("recurringtask").source
    page = add(
        visitor, task=PAY, args="[7]", kwargs='{"note": "ü"}', timezone="Europe/Berlin",
        queue_name="slow", priority="5", starts_at="2030-01-01 09:00:00.25+01:00",
        ends_at="2999-01-01", repeats="9", catch_up="36h", overlap="queue", description="Pays.",
    )  # fmt: skip
    assert page.messages == ["Added: daily."], page.text
    row = stored(using)
    assert (row.static, row.enabled, row.schedule, row.timezone, row.queue_name) == (
        False, True, "0 6 * * *", "Europe/Berlin", "slow",
    )  # fmt: skip
    assert (row.priority, row.repeats, row.catch_up, row.overlap, row.description) == (
        5, 9, "36 hours", "queue", "Pays.",
    )  # fmt: skip
    assert portable.aware(row.starts_at).isoformat() == "2030-01-01T08:00:00.250000+00:00"
    assert definition_of(row).call() == ([7], {"note": "ü"})

    begun = row.active_since
    page = edit(visitor, priority="-5", description="")
    assert page.messages == ["Changed: priority, description."], page.text
    row = stored(using)
    assert (row.priority, row.description, row.catch_up) == (-5, "", "36 hours")
    assert row.active_since == begun  # Nothing is late, and nothing is due again.
    assert portable.aware(row.starts_at).isoformat() == "2030-01-01T08:00:00.250000+00:00"
    assert definition_of(row).call() == ([7], {"note": "ü"})

    page = edit(visitor, schedule="every 90 minutes", timezone="", repeats="", ends_at="")
    assert page.messages == ["Changed: ends_at, repeats, schedule, timezone."], page.text
    row = stored(using)
    assert (row.schedule, row.repeats, row.ends_at) == ("every 90 minutes", None, None)
    assert row.active_since != begun
    assert edit(visitor).messages == ["Nothing was changed."]

    url = visitor.url("recurringtask", "delete", "daily")
    page = visitor.see(url)
    assert "Remove the recurring task daily?" in page
    assert stored(using)
    assert visitor.post(url, page.answer()).messages == ["Removed: daily."]
    assert not RecurringTask.objects.using(using).exists()

    log = LogEntry.objects.order_by("pk").values_list("action_flag", "change_message", "object_id")
    assert list(log) == [
        (ADDITION, "Added", "daily"),
        (CHANGE, "Changed: priority, description", "daily"),
        (CHANGE, "Changed: ends_at, repeats, schedule, timezone", "daily"),
        (DELETION, "Removed", "daily"),
    ]


@on_every_database
def test_a_preview_shows_the_next_runs_and_stores_nothing(using: str, scene: Scene) -> None:
    visitor = Visitor(*RIGHTS)
    page = add(visitor, "_preview", schedule="0 6 1 1 *", starts_at="2040-06-01", repeats="3")
    runs = re.findall(r"<li>(\d{4})-01-01 06:00:00", page.source)
    assert runs == ["2041", "2042", "2043"]
    assert "Nothing was stored yet." in page
    assert fields(page)["starts_at"] == "2040-06-01"
    assert not RecurringTask.objects.using(using).exists()

    add(visitor)
    before = RecurringTask.objects.using(using).values().get()
    page = edit(visitor, button="_preview", schedule="0 7 1 2 *")
    assert len(re.findall(r"<li>\d{4}-02-01 07:00:00", page.source)) == 5
    assert RecurringTask.objects.using(using).values().get() == before
    assert edit(visitor, page=page).messages == ["Changed: schedule, timezone."]
    assert add(visitor, "_preview").source.count("<li>2") == 0
    assert errors(add(visitor, "_preview")) == {
        "key": "There is a recurring task 'daily' already. Change it with change_recurring_task(), "
        "or give replace=True."
    }


@pytest.mark.django_db
@pytest.mark.parametrize("button", ["_save", "_preview"])
@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"key": ""}, "key", "required"),
        ({"key": "a\x07b"}, "key", "control character"),
        ({"task": "os.system"}, "task", "not registered"),
        ({"schedule": "61 * * * *"}, "schedule", "61"),
        ({"schedule": "every fortnight"}, "schedule", "not usable"),
        ({"schedule": "every 0 seconds"}, "schedule", "not from one second"),
        ({"schedule": "at noon"}, "schedule", "no instant"),
        ({"schedule": "at 2001-01-01"}, "schedule", "would never run"),
        ({"schedule": "at 2031-01-01", "repeats": "2"}, "schedule", "runs once"),
        ({"schedule": "x\x00"}, "schedule", ""),
        ({"timezone": "Europe/Atlantis"}, "timezone", "Atlantis"),
        ({"schedule": "every 5 minutes", "timezone": "UTC"}, "timezone", "no time zone"),
        ({"args": "[1"}, "args", "no JSON"),
        ({"args": "{}"}, "args", "JSON array"),
        ({"args": "[" * 100_000}, "args", "no JSON"),
        ({"args": "[NaN]"}, "args", "NaN is no number"),
        ({"kwargs": "[]"}, "kwargs", "JSON object"),
        ({"args": "[1]"}, "args", "cannot be called with its arguments"),
        ({"queue_name": "a\u200b"}, "queue_name", "Queue_name"),
        ({"priority": "101"}, "priority", "from -100 to 100"),
        ({"priority": "high"}, "priority", "whole number"),
        ({"starts_at": "soon"}, "starts_at", "no instant"),
        ({"ends_at": "3001-01-01"}, "ends_at", "1970 to 2999"),
        ({"starts_at": "2031-01-02", "ends_at": "2031-01-01"}, "schedule", "before it starts"),
        ({"repeats": "0"}, "repeats", "from 1 to"),
        ({"catch_up": "sometimes"}, "catch_up", "no duration"),
        ({"overlap": "maybe"}, "overlap", "not one of the available"),
    ],
)
def test_bad_input_is_told_beside_its_field_and_nothing_is_lost(
    given: dict[str, str], field: str, words: str, button: str, scene: Scene
) -> None:
    visitor = Visitor(*RIGHTS, "view_arguments")
    typed = {"description": "<b>kept</b>", "catch_up": "last"} | given
    page = add(visitor, button, **typed)
    assert page.status == 200
    found = errors(page)
    assert list(found) == [field], found
    assert words in found[field]
    assert "<b>kept" not in page.source
    shown = fields(page)
    assert {name: shown[name] for name in typed if "\x00" not in typed[name]}.items() >= {
        (name, value)
        for name, value in typed.items()
        if "\x00" not in value and "\x07" not in value and name != "overlap"
    }
    assert not RecurringTask.objects.exists()


@on_every_database
def test_two_users_do_not_overwrite_each_other(using: str, scene: Scene) -> None:
    visitor, other = Visitor(*RIGHTS), Visitor(*RIGHTS)
    add(visitor)
    opened = visitor.see(visitor.url("recurringtask", "edit", "daily"))
    assert edit(other, priority="3").messages == ["Changed: priority."]
    page = edit(visitor, page=opened, queue_name="mine")
    assert errors(page) == {"": schedule_forms.CONFLICT}
    assert fields(page)["queue_name"] == "mine"
    row = stored(using)
    assert (row.priority, row.queue_name) == (3, "default")
    forged = edit(visitor, queue_name="mine", version="0" * 64)
    assert errors(forged) == {"": schedule_forms.CONFLICT}
    # What is no part of its definition may change meanwhile: it is disabled, and runs.
    opened = visitor.see(visitor.url("recurringtask", "edit", "daily"))
    stored(using).disable(using=using)
    RecurringTask.objects.using(using).update(runs=3, last_job_id=7)
    assert edit(visitor, page=opened, queue_name="mine").messages == ["Changed: queue_name."]
    assert stored(using).enabled is False


@pytest.mark.django_db
def test_the_row_is_locked_from_the_comparison_to_the_change(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever changes it in between is noticed: the comparison is with the locked row."""
    visitor = Visitor(*RIGHTS)
    add(visitor)
    url = visitor.url("recurringtask", "edit", "daily")
    opened = visitor.see(url)
    original = schedule_forms.ChangeScheduleForm.apply

    def late(self: Any) -> Any:
        change_recurring_task("daily", priority=9)
        return original(self)

    monkeypatch.setattr(schedule_forms.ChangeScheduleForm, "apply", late)
    assert errors(edit(visitor, page=opened, priority="1")) == {"": schedule_forms.CONFLICT}


@pytest.mark.django_db
def test_hidden_arguments_are_not_overwritten_and_not_shown(scene: Scene) -> None:
    schedule_recurring_task(
        "daily", pay, schedule="0 6 * * *", args=[1], kwargs={"token": "S3CRET-VALUE"}
    )
    knows, does_not = Visitor(*RIGHTS, "view_arguments"), Visitor(*RIGHTS)
    for visitor in (knows, does_not):
        page = visitor.see(visitor.url("recurringtask", "edit", "daily"))
        assert "S3CRET" not in page.source
        assert "*****" not in page.source
        assert ("kwargs" in fields(page)) == (visitor is knows)
    edit(knows, priority="1")
    # Fields that are not there are not read either.
    edit(does_not, priority="2", args="[5]", kwargs='{"token": "x"}')
    assert stored("default").priority == 2
    assert definition_of(stored("default")).call() == ([1], {"token": "S3CRET-VALUE"})
    page = edit(knows, args="[1]", kwargs='{"unfit": 1}')
    assert "cannot be called" in errors(page)["args"]
    page = edit(knows, kwargs='{"account": 5}')
    assert page.messages == ["Changed: args, kwargs."]
    assert definition_of(stored("default")).call() == ([], {"account": 5})
    assert not [each for each in LogEntry.objects.all() if "S3CRET" in each.change_message]
    added = add(does_not, key="other", task=PAY, args="[5]")
    assert "cannot be called" in errors(added)[""]


@pytest.mark.django_db
def test_those_in_code_are_neither_changed_nor_removed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definition, "_registry", {})
    schedule_recurring_task("mirrored", noop, schedule="0 6 * * *")
    RecurringTask.objects.update(static=True)
    schedule_recurring_task("in code", noop, schedule="0 6 * * *")
    recurring(schedule="@daily", key="in code")(noop)
    before = list(RecurringTask.objects.order_by("pk").values())
    visitor = Visitor(*RIGHTS)
    for key in ("mirrored", "in code"):
        page = visitor.see(visitor.url("recurringtask", "change", key))
        assert "defined in the code" in page
        assert "Edit" not in page
        for verb in ("edit", "delete"):
            url = visitor.url("recurringtask", verb, key)
            assert "defined in the code" in visitor.post(url, {"confirmed": "yes"}).messages[0]
        found = remove(visitor, key)
        assert "defined in the code" in found.messages[0]
        assert list(errors(add(visitor, key=key))) == ["key"]
    assert list(RecurringTask.objects.order_by("pk").values()) == before


@pytest.mark.django_db
@pytest.mark.parametrize("right", RIGHTS)
def test_each_of_these_needs_its_permission(right: str, scene: Scene) -> None:
    schedule_recurring_task("daily", noop, schedule="0 6 * * *")
    visitor = Visitor("view_recurringtask", *({right} - {"view_recurringtask"}))
    page = visitor.see(visitor.url("recurringtask", "change", "daily"))
    has = {each: right == f"{each}_recurringtask" for each in ("add", "change", "delete")}
    assert (">Edit</a>" in page.source, ">Remove</a>" in page.source) == (
        has["change"], has["delete"],
    )  # fmt: skip
    assert ("remove" in visitor.list("recurringtask").actions) == has["delete"]
    assert "delete_selected" not in visitor.list("recurringtask").actions
    for verb, may in (("add", has["add"]), ("edit", has["change"]), ("delete", has["delete"])):
        url = visitor.url("recurringtask", verb, *([] if verb == "add" else ["daily"]))
        assert visitor.see(url).status == (200 if may else 403)
        answer = visitor.client.post(url, {"confirmed": "yes", "_preview": "x"})
        assert (answer.status_code == 403) == (not may)


@pytest.mark.django_db
def test_permissions_are_checked_for_each_row(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def has(self: Any, request: Any, obj: Any = None) -> bool:
        return obj is None or obj.key == "mine"

    for key in ("mine", "theirs"):
        schedule_recurring_task(key, noop, schedule="0 6 * * *")
    visitor = Visitor(*RIGHTS)
    for name in ("has_edit_permission", "has_delete_permission"):
        monkeypatch.setattr(RecurringTaskAdmin, name, has)
    for verb in ("edit", "delete"):
        url = visitor.url("recurringtask", verb, "theirs")
        assert visitor.see(url).status == 403
        assert visitor.post(url, {"confirmed": "yes", "_save": "x"}).status == 403
        assert visitor.see(visitor.url("recurringtask", verb, "mine")).status == 200
    assert "Edit" not in visitor.see(visitor.url("recurringtask", "change", "theirs"))
    assert remove(visitor, "mine", "theirs").messages == ["Removed: mine."]
    assert [row.key for row in RecurringTask.objects.all()] == ["theirs"]


@on_every_database
def test_a_damaged_row_is_removed_in_the_list(using: str, scene: Scene) -> None:
    for key in ("good", "unusable", "unreadable"):
        schedule_recurring_task(key, noop, schedule="0 6 * * *")
    rows = RecurringTask.objects.using(using)
    rows.filter(pk="unusable").update(schedule="nonsense", task_path="gone", arguments="{")
    if connections[using].vendor == "sqlite":
        with connections[using].cursor() as cursor:
            cursor.execute(
                "UPDATE steady_queue_recurring_tasks SET starts_at = 'x' WHERE key = 'unreadable'"
            )
    visitor = Visitor(*RIGHTS)
    assert visitor.see(visitor.url("recurringtask", "edit", "unusable")).status == 200
    assert edit(visitor, "unusable", priority="7").status == 200
    page = remove(visitor, "unreadable", "unusable")
    assert sorted(page.messages) == ["Removed: unreadable.", "Removed: unusable."]
    assert list(rows.values_list("pk", flat=True)) == ["good"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("column", ["starts_at", "repeats", "priority", "arguments", "overlap"])
def test_the_form_of_a_damaged_row_is_shown_or_leads_to_the_list(column: str, scene: Scene) -> None:
    schedule_recurring_task("daily", noop, schedule="0 6 * * *")
    with connections["default"].cursor() as cursor:
        cursor.execute(f"UPDATE steady_queue_recurring_tasks SET {column} = x'ff00'")
    before = RecurringTask.objects.filter(pk="daily").count()
    visitor = Visitor(*RIGHTS, "view_arguments")
    for page in (
        visitor.post(visitor.url("recurringtask", "edit", "daily"), {**PLAIN, "_save": "x"}),
        Page(visitor.client.get(visitor.url("recurringtask", "edit", "daily"), follow=True)),
    ):
        assert page.status == 200
        told = " ".join(page.messages) + str(errors(page))
        assert "damaged" in told or 'name="schedule"' in page.source, (told, page.text)
    assert RecurringTask.objects.filter(pk="daily").count() == before == 1


@on_every_database
def test_a_change_neither_repeats_a_run_nor_loses_one(using: str, scene: Scene) -> None:
    visitor = Visitor(*RIGHTS)
    add(visitor, schedule="every 60 minutes", catch_up="last", repeats="5")
    past = scene.present(using) - timedelta(hours=3)
    run = portable.storable(past)
    RecurringTask.objects.using(using).update(runs=2, active_since=run)
    RecurringExecution.objects.using(using).create(
        task_key="daily", run_at=run, job_id=None, created_at=run
    )
    edit(visitor, queue_name="other")
    row = stored(using)
    assert (row.runs, row.active_since) == (2, run)  # Slots that were missed still are.
    assert errors(edit(visitor, repeats="1")) == {
        "repeats": "Repeats is 1, but there were 2 runs so far. Give a larger number, or disable "
        "or remove the task."
    }


@pytest.mark.django_db
def test_the_forms_need_neither_scripts_nor_styles_of_their_own(scene: Scene) -> None:
    visitor = Visitor(*EVERYTHING)
    add(visitor)
    for page in (
        visitor.see(visitor.url("recurringtask", "add")),
        visitor.see(visitor.url("recurringtask", "edit", "daily")),
        add(visitor, "_preview", key="x"),
        add(visitor, schedule=""),
    ):
        body = page.source.partition('<div id="content-main"')[2]
        assert "<script" not in body.partition("</form>")[0]
        assert not re.search(r"\s(?:style|on\w+)=", body.partition("</form>")[0])
    assert PATH in visitor.see(visitor.url("recurringtask", "add")).source


@pytest.mark.django_db(transaction=True)
def test_what_one_user_was_allowed_to_do_has_no_schedule(scene: Scene) -> None:
    page = add(Visitor(*RIGHTS, "view_arguments"), task=ACT_ON_LIST)
    assert "Steady Queue enqueues this task itself." in page
    assert not RecurringTask.objects.exists()
    with pytest.raises(RecurringTaskError, match="enqueues this task itself"):
        schedule_recurring_task("daily", find_task(ACT_ON_LIST), schedule="0 6 * * *")
