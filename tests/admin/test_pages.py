"""The pages of one job, queue, process, recurring task and semaphore, and the other lists."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from steady_queue_core import arguments
from steady_queue_core.admin import texts
from steady_queue_core.dialects import JobKey, portable
from steady_queue_core.models import (
    Job,
    Process,
    Rate,
    ReadyExecution,
    RecurringExecution,
    RecurringTask,
    Retention,
    ScheduledExecution,
    Semaphore,
    UniqueKey,
)
from steady_queue_core.models.process import NEVER_AGAIN, register
from steady_queue_core.models.semaphore import Permit
from steady_queue_core.tasks.metadata import JobMetadata
from steady_queue_core.timezones import to_microseconds

from ..app.tasks import add
from .places import HOUR, Scene, on_every_database
from .visitor import EVERYTHING, Page, Visitor


@on_every_database
def test_a_job_tells_what_became_of_it_and_when(using: str, scene: Scene) -> None:
    [failed] = scene.failed(1, queue_name="mail", rank=-7, task_path=add.module_path)
    errors = [["builtins.KeyError", "Traceback: the first"], ["app.Late", "Traceback: the second"]]
    started = portable.storable(scene.dialect.current_time(scene.connection) - HOUR)
    Job.objects.using(using).filter(pk=failed).update(
        errors=json.dumps(errors), worker_ids='["worker-1", "worker-2"]', attempts=2,
        max_attempts=2, started_at=started, enqueued_at=started - timedelta(minutes=5),
        arguments=arguments.encode_call(
            [1, datetime(2026, 1, 2)], {"size": "x", "password": "hush"}
        ),
    )  # fmt: skip
    page = Visitor(*EVERYTHING).see(Visitor("view_job").url("job", "change", failed))
    assert "State Failed" in page
    assert "Priority 7 Attempts 2 of 2 Workers worker-1, worker-2" in page
    assert "5 min Last attempt" in page
    assert "Error builtins.ValueError Message told" in page
    assert "1, datetime.datetime(2026, 1, 2, 0, 0), size='x', password='****" in page
    assert "hush" not in page
    first, second = page.text.index("the first"), page.text.index("the second")
    assert second < first


@on_every_database
def test_a_job_tells_how_it_is_delivered_and_whom_it_has_taken_along(
    using: str, scene: Scene
) -> None:
    [failed] = scene.failed(1)
    jobs = Job.objects.using(using)

    def page(metadata: JobMetadata) -> Page:
        jobs.filter(pk=failed).update(metadata=metadata.text())
        return Visitor(*EVERYTHING).see(Visitor("view_job").url("job", "change", failed))

    assert "Delivery" not in page(JobMetadata())
    assert "Delivery transactional" in page(JobMetadata(delivery="transactional"))
    crashes = ("worker-1 (pid 7 on here)", "\x1b[2J")
    told = page(JobMetadata(delivery="at_least_once", crashes=crashes))
    assert "Delivery at_least_once, after the end of worker-1 (pid 7 on here); " in told
    assert "\x1b" not in told


@on_every_database
def test_a_job_shows_its_unique_key_and_who_has_it(using: str, scene: Scene) -> None:
    key = JobKey("shop.tasks.pay/\x1b7", until="started")
    text = JobMetadata(unique=key.stored).text()
    [failed] = scene.failed(1, metadata=text)
    visitor = Visitor(*EVERYTHING)

    def told(job_id: int) -> str:
        page = visitor.see(visitor.url("job", "change", job_id))
        assert "\x1b" not in page
        return page.text

    assert "Unique key shop.tasks.pay/\\x1b7 (free)" in told(failed)
    [ready] = scene.ready(1, metadata=text)
    assert "Unique key shop.tasks.pay/\\x1b7 (until it starts)" in told(ready)
    assert f"Unique key shop.tasks.pay/\\x1b7 (of job #{ready} )" in told(failed)
    [plain] = scene.ready(1)
    assert "Unique key" not in told(plain)
    until = portable.storable(datetime(2040, 1, 2, tzinfo=UTC))
    UniqueKey.objects.using(using).update(expires_at=until)
    assert "x1b7 (until 2040-01-0" in told(ready)
    Job.objects.using(using).filter(pk=ready).delete()
    assert "x1b7 (free)" in told(failed)


@on_every_database
def test_a_job_in_each_state_has_a_page(using: str, scene: Scene) -> None:
    [failed], [finished], [claim] = scene.failed(1), scene.finished(1), scene.claimed(1)
    [ready], [scheduled] = scene.ready(1), scene.ready(1, delay=HOUR)
    [blocked] = scene.blocked(1)
    visitor = Visitor(*EVERYTHING)
    found = {
        job: visitor.see(visitor.url("job", "change", job)).text.partition("Task ")[0]
        for job in (failed, finished, claim.job_id, ready, scheduled, blocked)
    }
    states = ["Failed", "Finished", "Running Process worker-1 (pid 1 on here)", "Ready"]
    states += ["Scheduled", "Blocked"]
    for (job, text), state in zip(found.items(), states, strict=True):
        assert f"Job #{job} " in text
        assert f"State {state}" in text


@on_every_database
def test_queues_tell_how_long_their_oldest_job_has_waited(using: str, scene: Scene) -> None:
    first, *_ = scene.ready(3, "mail")
    past = portable.storable(scene.dialect.current_time(scene.connection) - 3 * HOUR)
    ReadyExecution.objects.using(using).filter(pk=first).update(created_at=past)
    visitor = Visitor("view_queue")
    page = visitor.list("pause")
    assert "mail open 3 3 h" in page
    assert "queue=mail" in page.source
    assert "mail" not in visitor.list("pause", q="reports")
    page = visitor.see(visitor.url("pause", "change", "mail"))
    assert "Name mail State open Ready jobs 3 Oldest wait 3 h" in page


@on_every_database
def test_processes_stand_below_the_one_that_started_them(using: str, scene: Scene) -> None:
    def start(name: str, supervisor_id: int | None, **metadata: Any) -> int:
        process = register(
            using, kind=name.partition("-")[0], name=name, pid=7, hostname="host",
            supervisor_id=supervisor_id, metadata=json.dumps(metadata),
        )  # fmt: skip
        return process.id

    first, second = start("supervisor-1", None), start("supervisor-2", None)
    start("worker-2", second, queues=["mail", "web*"], threads=5), start("worker-3", first)
    silent = start("worker-4", first)
    dead = start("worker-5", first)
    rows = Process.objects.using(using)
    past = portable.storable(scene.dialect.current_time(scene.connection) - 2 * HOUR)
    rows.filter(pk=silent).update(last_heartbeat_at=past)
    rows.filter(pk=dead).update(last_heartbeat_at=portable.storable(NEVER_AGAIN))
    [claim] = scene.claimed(1)
    visitor = Visitor("view_process")
    page = visitor.list("process")
    names = [each for each in page.text.split() if each.startswith(("worker-", "supervisor-"))]
    assert names == [
        "worker-1", "supervisor-1", "worker-3", "worker-4", "worker-5", "supervisor-2", "worker-2",
    ]  # fmt: skip
    assert "worker-4 stale 7 on host - 0 2 h ago" in page
    assert "worker-5 declared dead" in page
    assert "mail, web*; 5 threads" in page
    page = visitor.see(visitor.url("process", "change", scene.worker.id))
    assert f"#{claim.job_id} conformance.tasks.work default" in page
    assert "mail" in visitor.see(visitor.url("process", "change", dead - 3))


@on_every_database
def test_recurring_tasks_tell_their_runs_and_are_switched(using: str, scene: Scene) -> None:
    present = scene.dialect.current_time(scene.connection)
    for key, schedule in (("daily", "0 6 * * *"), ("broken", "every now and then")):
        RecurringTask.objects.using(using).create(
            key=key, task_path=add.module_path, schedule=schedule, timezone="Europe/Berlin",
            arguments=arguments.encode_call([1, 2], {}), backend_name="default",
            queue_name="default", static=False,
            created_at=portable.storable(present), updated_at=portable.storable(present),
        )  # fmt: skip
    for days in (1, 2):
        RecurringExecution.objects.using(using).create(
            task_key="daily", run_at=portable.storable(present - timedelta(days=days)),
            created_at=portable.storable(present), job_id=days,
        )  # fmt: skip
    visitor = Visitor(*EVERYTHING)
    page = visitor.list("recurringtask")
    yesterday = timezone.localtime(present - timedelta(days=1)) if timezone.is_aware(present) else 0
    assert f"{yesterday:%Y-%m-%d %H:%M:%S}" in page
    assert "daily add 0 6 * * * Europe/Berlin enabled 20" in page
    assert "broken add every now and then Europe/Berlin enabled - -" in page

    page = visitor.act("disable", ["daily"], "recurringtask")
    assert page.messages == ["Disabled: daily."]
    assert "daily add 0 6 * * * Europe/Berlin disabled - 20" in page
    page = visitor.act("disable", ["daily"], "recurringtask")
    assert page.messages == ["Already disabled: daily."]
    page = visitor.act("enable", ..., "recurringtask")
    assert page.messages == ["Already enabled: broken.", "Enabled: daily."]
    page = visitor.act("run_now", ["daily", "broken"], "recurringtask")
    [job] = scene.ids(Job)
    assert page.messages[1] == f"Enqueued as job #{job}: daily."
    assert page.messages[0].startswith("The recurring task 'broken' cannot be run:")
    page = visitor.see(visitor.url("recurringtask", "change", "daily"))
    assert page.buttons == ["Run now", "Disable"]
    assert "1, 2" in page
    assert "#1" in page
    page = visitor.post(visitor.url("recurringtask", "run", "broken"))
    assert page.messages[0].startswith("The recurring task 'broken' cannot be run:")


@on_every_database
def test_recurring_tasks_tell_what_is_left_of_them(using: str, scene: Scene) -> None:
    present = scene.dialect.current_time(scene.connection)
    rows = RecurringTask.objects.using(using)
    day, past = timedelta(days=1), portable.storable(present - timedelta(days=1))
    instant = (present - day).isoformat()
    values: dict[str, dict[str, Any]] = {
        "going on": {"repeats": 5, "runs": 2, "overlap": "skip"},
        "last one": {"repeats": 5, "runs": 4},
        "ran out": {"repeats": 5, "runs": 5},
        "ran out, off": {"repeats": 5, "runs": 5, "enabled": False},
        "ended": {"ends_at": past},
        "to begin": {"starts_at": portable.storable(present + 400 * day)},
        "once": {"schedule": f"at {(present + 400 * day).isoformat()}", "catch_up": "last"},
        "once, over": {"schedule": f"at {instant}", "catch_up": "last"},
        "once, late": {"schedule": f"at {instant}", "catch_up": "last"},
        "waits": {"ends_at": past, "overlap": "queue", "waiting_at": past},
        "nonsense": {"repeats": -3, "runs": -7, "overlap": "never", "schedule": "at noon"},
    }
    for key, value in values.items():
        since = present - 2 * day if key != "once, over" else present
        rows.create(**{
            "key": key, "task_path": add.module_path, "schedule": "0 6 * * *", "timezone": "UTC",
            "arguments": arguments.encode_call([1, 2], {}), "backend_name": "default",
            "queue_name": "default", "static": False, "active_since": portable.storable(since),
            "created_at": past, "updated_at": past, **value,
        })  # fmt: skip
    visitor = Visitor(*EVERYTHING)
    page = visitor.list("recurringtask")
    state = "add .*?(enabled|disabled|finished) (-|[0-9])"
    states = {key: re.search(f"{re.escape(key)} {state}", page.text) for key in values}
    found = {key: each and each.groups() for key, each in states.items()}
    for key in ("ran out", "ended", "once, over"):
        assert found[key] == ("finished", "-"), key
    assert found["ran out, off"] == ("disabled", "-")
    for key in ("going on", "last one", "to begin", "once", "once, late", "waits"):
        assert found[key] == ("enabled", "2"), key
    assert found["nonsense"] == ("enabled", "-")
    for left in ("3 of 5", "1 of 5", "0 of 5"):
        assert left in page

    def see(key: str) -> Page:
        return visitor.see(visitor.url("recurringtask", "change", key))

    page = see("going on")
    assert "Runs 3 of 5 left" in page
    assert "Overlapping runs skip" in page
    assert re.search(r"Next runs [^,]+, [^,]+, [^,]+ Missed", page.text)
    assert re.search(r"Next runs [^,]+ Missed", see("last one").text)
    assert "State finished" in see("ended")
    assert "Ends 2" in see("ended")
    assert "Starts 2" in see("to begin")
    assert "Waiting 2" in see("waits")
    assert "Overlapping runs never" in see("nonsense")


@on_every_database
def test_the_page_of_a_job_tells_for_when_it_was_meant(using: str, scene: Scene) -> None:
    [job] = scene.ready(1)
    intended = datetime(2026, 6, 1, 12, tzinfo=UTC)
    text = JobMetadata(intended_time=intended).text()
    Job.objects.using(using).filter(pk=job).update(metadata=text)
    page = Visitor(*EVERYTHING).see(Visitor(*EVERYTHING).url("job", "change", job))
    assert f"Intended for {texts.moment(intended)}" in page


@on_every_database
def test_semaphores_tell_what_is_in_use_and_who_waits(using: str, scene: Scene) -> None:
    scene.blocked(2, "account:7")
    rows = Semaphore.objects.using(using)
    for number in range(60):
        rows.create(key=f"account:{number}", value=1, limit=3)
    visitor = Visitor("view_semaphore", "view_job")
    page = visitor.list("semaphore")
    assert "60 semaphores" in page
    assert "account:0 2 of 3 0" in page
    page = visitor.see(visitor.url("semaphore") + page.link("Next"))
    assert "account:7 2 of 3 2" in page
    assert "account:0 " not in page
    assert "1 semaphore" in visitor.list("semaphore", q="account:7")
    page = visitor.see(visitor.url("semaphore", "change", "account_3A7"))
    assert "In use 2 of 3 Free 1 Limit 3 Waiting jobs 2" in page
    assert "Jobs with a permit None." in page
    [holder, _] = scene.ready(2)
    Permit.objects.using(using).create(job_id=holder, key="account:7")
    page = visitor.see(visitor.url("semaphore", "change", "account_3A7"))
    assert f"Jobs with a permit Job Task #{holder} conformance.tasks.work" in page
    assert page.text.count("#") == 1


@on_every_database
def test_rate_limits_tell_what_is_free_next_and_a_job_its_limit(using: str, scene: Scene) -> None:
    present = to_microseconds(scene.dialect.current_time(scene.connection))
    rows, minute = Rate.objects.using(using), 60_000_000
    for number in range(60):
        rows.create(
            key=f"shop:{number}", gate=present, line=present + 10 * minute + number, shift=minute,
            limit=6, period=minute, burst=3,
        )  # fmt: skip
    rows.create(key="rested", gate=present, line=0, shift=0, limit=1, period=minute, burst=0)
    visitor = Visitor("view_rate", "view_job")
    page = visitor.list("rate")
    assert "61 rate limits" in page
    assert "rested 1 in 1 minute 0 now" in page
    assert "shop:0 6 in 1 minute, burst 3 66 20" in page
    assert "1 rate limit" in visitor.list("rate", q="shop:7")
    page = visitor.see(visitor.url("rate", "change", "shop_3A7"))
    assert "Rate 6 in 1 minute, burst 3 Slots taken 66 Next free slot 20" in page
    assert "Slots put off by 1 min" in page
    [job] = scene.ready(1)
    metadata = JobMetadata(rate=("shop:1", 6, timedelta(minutes=1))).text()
    Job.objects.using(using).filter(pk=job).update(metadata=metadata)
    assert "Rate limit shop:1: 6 in 1 minute " in visitor.see(visitor.url("job", "change", job))


@on_every_database
@pytest.mark.parametrize(
    "model",
    ["job", "pause", "process", "rate", "recurringtask", "semaphore", "jobbatch", "share"],
)
def test_what_is_not_there_has_no_page(using: str, model: str, scene: Scene) -> None:
    visitor = Visitor(*EVERYTHING)
    for key in ("0", "9" * 30, "x" * 300, "%00", "_00", "__", "%ED%A0%80", "-1", "%C2%B2", "1_0"):
        for name in ("change", "history", "delete"):
            url = visitor.url(model, name, "KEY").replace("KEY", key)
            assert visitor.client.get(url).status_code in (200, 302, 403, 404), url
    page = visitor.see(reverse("admin:index"))  # Which tells all that was not there.
    assert page.status == 200


@on_every_database
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/Los_Angeles"])
def test_the_ends_of_the_calendar_are_shown(
    using: str, zone: str, scene: Scene, settings: Any
) -> None:
    settings.TIME_ZONE = zone
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    # Such a time is refused, but may be in the table.
    job = int(add.using(run_after=timedelta(days=1)).enqueue(1, 2).id)
    stored = portable.storable(last)
    ScheduledExecution.objects.using(using).filter(pk=job).update(due_at=stored)
    Job.objects.using(using).filter(pk=job).update(scheduled_at=stored)
    Process.objects.using(using).update(last_heartbeat_at=portable.storable(last))
    visitor = Visitor(*EVERYTHING)
    shown = texts.moment(last)
    assert shown.endswith("23:59:59 UTC") == (zone == "Pacific/Kiritimati")
    assert visitor.list(state="scheduled").ids == [job]
    assert shown in visitor.list(state="scheduled").source
    assert shown in visitor.see(visitor.url("job", "change", job))
    assert visitor.list("process").status == 200
    assert visitor.see(visitor.url("process", "change", scene.worker.id)).status == 200


@pytest.mark.django_db
def test_the_pages_work_without_time_zones(settings: Any, scene: Scene) -> None:
    settings.USE_TZ, settings.TIME_ZONE = False, "Asia/Kathmandu"
    [failed] = scene.failed(1)
    scene.ready(2), scene.ready(1, delay=HOUR), scene.blocked(1), scene.claimed(1)
    visitor = Visitor(*EVERYTHING)
    for state in ("", "ready", "scheduled", "blocked", "waiting", "running", "failed", "finished"):
        assert visitor.list(state=state).status == 200
    assert re.search(r"\d m?s", visitor.list(state="ready").text)
    shown = f"{datetime.now():%Y-%m-%d}"
    assert shown in visitor.see(visitor.url("job", "change", failed))
    assert re.search(r"\d m?s ago", visitor.list("process").text)
    assert visitor.list("pause").status == 200


@on_every_database
def test_a_job_tells_when_it_expires_and_how_long_it_is_kept(using: str, scene: Scene) -> None:
    visitor = Visitor(*EVERYTHING)

    def page(job: int) -> str:
        return visitor.see(visitor.url("job", "change", job)).text

    week, text = timedelta(days=7), '{"expires":9}'
    metadata = JobMetadata(expires=HOUR, retention=week, failure_retention="forever").text()
    failed, forever = scene.failed(2, metadata=metadata)
    [ready], [started] = scene.ready(1, metadata=metadata), scene.ready(1, metadata=metadata)
    Job.objects.using(using).filter(pk=started).update(
        started_at=portable.storable(scene.present(using))
    )
    assert "Kept 7 days after success, forever after failure" in page(ready)
    assert "Expires" in page(ready)
    assert "Expires" not in page(started)
    [claim] = [each for each in scene.claim() if each.job_id == ready]
    assert "Expires" not in page(claim.job_id)
    until = portable.storable(scene.present(using) + week)
    Retention.objects.using(using).create(job_id=failed, expires_at=until)
    Retention.objects.using(using).create(job_id=forever, expires_at=None)
    assert f"Kept until {texts.moment(until)}" in page(failed)
    assert "Kept until" not in page(forever)
    [damaged] = scene.ready(1, metadata=text)
    assert "Expires" not in page(damaged)
    assert "Kept" not in page(damaged)
