"""``processes``, ``schedules`` and ``limits``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db.models import Value

from steady_queue_core import limits_concurrency, task
from steady_queue_core.dialects import portable
from steady_queue_core.dynamic_tasks import schedule_recurring_task
from steady_queue_core.models import Job, Process, Rate, RecurringTask, Semaphore
from steady_queue_core.models.process import NEVER_AGAIN, register
from steady_queue_core.timezones import to_microseconds

from ..core.driver import Driver
from ..models.everywhere import Jobs, on_every_database
from ..models.recurrence import Recurrence, greet, tasks
from .invoking import Told, invoke


@limits_concurrency(to=1, key=lambda account: account)
@task
def one_at_a_time(account: str) -> None:
    """Do nothing."""


def only(told: Told, name: str) -> Any:
    """Return what JSON says under a name of the only database."""
    assert told.code == 0, told
    [database] = told.json["databases"]
    return database[name]


@on_every_database
def test_processes_are_shown_as_a_tree_with_their_state(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    parent = register(
        using, kind="supervisor", name="boss", pid=1, hostname="web-1", supervisor_id=None,
        metadata="{}",
    )  # fmt: skip
    Driver(using)
    for name in ("hand", "lost"):
        register(
            using, kind="worker", name=name, pid=2, hostname="web-1", supervisor_id=parent.id,
            metadata=json.dumps({"queues": ["mail", "etl*"], "threads": 3}),
        )  # fmt: skip
    processes = Process.objects.using(using)
    processes.filter(name="lost").update(last_heartbeat_at=portable.storable(NEVER_AGAIN))
    listed = only(invoke("processes", "--json"), "processes")
    assert [each["name"] for each in listed][:3] == ["boss", "hand", "lost"]
    assert [each["state"] for each in listed] == ["live", "live", "declared dead", "live"]
    assert listed[1]["queues"] == ["mail", "etl*"]
    assert listed[1]["threads"] == 3
    assert listed[1]["supervisor_id"] == parent.id
    assert listed[2]["heartbeat_age_s"] is None
    shown = invoke("processes").lines
    assert shown[2].startswith("└ hand ")
    assert "mail, etl*; 3 threads" in shown[2]


@pytest.mark.django_db
def test_damaged_rows_do_not_hide_other_processes() -> None:
    register(
        "default", kind="worker", name="odd\x1b", pid=1, hostname="web-1", supervisor_id=None,
        metadata='{"queues": 7',
    )  # fmt: skip
    Process.objects.filter(name="odd\x1b").update(metadata="[")
    Driver("default")
    told = invoke("processes")
    assert "odd\\x1b" in told.out
    assert len(told.lines) == 3


@pytest.mark.django_db
def test_a_damaged_schedule_hides_no_other_one() -> None:
    for key in ("damaged", "daily"):
        schedule_recurring_task(key, greet, schedule="@daily", timezone="UTC")
    RecurringTask.objects.filter(key="damaged").update(starts_at=Value("2026-99-99 00:00:00"))
    listed = only(invoke("schedules", "--json"), "schedules")
    assert [each["key"] for each in listed] == ["daily"]
    assert invoke("schedules", "next", "damaged").code == 4
    assert invoke("metrics").code == 0


@on_every_database
def test_schedules_are_listed_run_and_switched(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    for key in ("daily", "hourly"):
        schedule_recurring_task(key, greet, schedule=f"@{key}", timezone="UTC")
    listed = only(invoke("schedules", "--json"), "schedules")
    assert [(each["key"], each["state"]) for each in listed] == [
        ("daily", "enabled"),
        ("hourly", "enabled"),
    ]
    assert len(listed[0]["next_runs"]) == 1
    [hourly] = only(invoke("schedules", "next", "hourly", "-n", 3, "--json"), "schedules")
    assert len(hourly["next_runs"]) == 3
    assert len(invoke("schedules", "next", "hourly", "-n", 3).lines) == 4

    assert invoke("schedules", "disable", "daily").out == "daily: disabled\n"
    assert invoke("schedules", "disable", "daily").out == "daily: is disabled already\n"
    assert not Recurrence(using).row("daily").enabled
    assert invoke("schedules", "next", "daily").lines == ["daily: no run is due, it is disabled"]
    assert invoke("schedules", "enable", "daily").out == "daily: enabled\n"
    assert Recurrence(using).row("daily").enabled

    ran = invoke("schedules", "run", "daily", "--json").json
    job = Job.objects.using(using).get()
    assert ran["schedules"] == [{"key": "daily", "job": job.pk, "enqueued": True}]


@pytest.mark.django_db
def test_schedules_that_do_not_exist_or_cannot_run_are_named() -> None:
    schedule_recurring_task("daily", greet, schedule="@daily")
    for key in ("dayly", "a\0b"):
        told = invoke("schedules", "run", "daily", key, "--json")
        assert told.code == 4
        assert told.json["problems"] == [f"There is no recurring task {key!r}."]
        assert len(told.json["schedules"]) == 1
        assert invoke("schedules", "next", key).code == 4
    RecurringTask.objects.update(backend_name="gone")
    told = invoke("schedules", "run", "daily", "--json")
    assert told.code == 1
    assert "'gone' is no Steady Queue backend" in told.json["problems"][0]
    assert invoke("schedules", "run").code == 2


@on_every_database
def test_limits_in_use_are_shown(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    for account in ("ada", "ada", "ada", "bob"):
        one_at_a_time.enqueue(account)
    found = only(invoke("limits", "--json"), "concurrency")
    assert [each["key"].endswith(name) for each, name in zip(found, ("ada", "bob"), strict=True)]
    assert [(each["in_use"], each["limit"], each["blocked"]["count"]) for each in found] == [
        (1, 1, 2),
        (1, 1, 0),
    ]
    first = invoke("limits", "--limit", 1, "--json")
    assert first.json["databases"][0]["has_more"]
    [rest] = only(invoke("limits", "--after", found[0]["key"], "--json"), "concurrency")
    assert rest == found[1]
    shown = invoke("limits", "--limit", 1).lines
    assert shown[1].split()[-4:] == ["1", "of", "1", "2"]
    assert shown[2] == "There are more keys: see --limit and --after."


@pytest.mark.django_db(transaction=True)
def test_rate_limits_are_shown() -> None:
    assert invoke("limits").lines == ["No limit is in use."]
    present = to_microseconds(Jobs.present("default"))
    Rate.objects.create(
        key="api", gate=present, line=present + 90_000_000, shift=0, limit=2, period=60_000_000,
        burst=0,
    )  # fmt: skip
    Rate.objects.create(key="idle", gate=0, line=0, shift=0, limit=2, period=60_000_000, burst=5)
    api, idle = only(invoke("limits", "--json"), "rates")
    assert (api["rate"], api["slots_taken"]) == ("2 in 1 minute", 3)
    assert api["free_at"].endswith("+00:00")
    assert (idle["rate"], idle["slots_taken"], idle["free_at"]) == (
        "2 in 1 minute, burst 5", 0, None,
    )  # fmt: skip
    assert Semaphore.objects.count() == 0
    assert invoke("limits").lines[2].endswith("0  now")


# --- metrics --------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_metrics_that_do_not_exist_are_named() -> None:
    told = invoke("metrics", "steady_queue_up", "steady_queue_task", "steady_queue_tasks_failed")
    assert told.code == 4
    assert told.out == ""
    assert told.err == (
        "There is no metric 'steady_queue_task'; did you mean 'steady_queue_tasks'?\n"
    )
    told = invoke("metrics", "steady_queue_up", "steady_queue_tasks_failed")
    assert (told.code, told.err) == (0, "")
    families = [line.split()[2] for line in told.lines if line.startswith("# TYPE")]
    assert families == ["steady_queue_up", "steady_queue_tasks_failed_total"]
