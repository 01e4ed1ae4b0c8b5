"""``move``, ``reschedule`` and ``copy``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.management.base import CommandError

from steady_queue_core.conformance.base import limited_job, stored_id
from steady_queue_core.dialects import JobKey, portable
from steady_queue_core.listings import job_listing
from steady_queue_core.models import BlockedExecution, Job, ReadyExecution, ScheduledExecution
from steady_queue_core.tasks.metadata import JobMetadata

from ..models.everywhere import Jobs, on_every_database
from ..models.recurrence import tasks
from .invoking import invoke

HOUR = timedelta(hours=1)


@pytest.fixture
def jobs(using: str, settings: Any) -> Jobs:
    settings.TASKS = tasks(using)
    return Jobs(using)


@on_every_database
def test_jobs_are_moved(using: str, jobs: Jobs) -> None:
    ready, [later], [failed] = jobs.ready(3), jobs.ready(delay=HOUR), jobs.failed(1, rank=-1)
    assert invoke("move", ready[0], "--to-queue", "mail").out == f"Job {ready[0]}: moved.\n"
    told = invoke("move", "--queue", "default", "--to-queue", "mail", "--to-priority", "-5")
    assert told.out == "Moved 3 jobs.\n"
    found = Job.objects.using(using).filter(queue_name="mail", rank=5)
    assert sorted(found.values_list("pk", flat=True)) == [*ready[1:], later]
    assert jobs.ids(ScheduledExecution) == [later]
    told = invoke("move", "--all", "--to-priority", "1", "--dry-run", "--json").json
    assert (told["action"], told["count"], told["dry_run"]) == ("move", 4, True)
    refused = invoke("move", failed, "--to-queue", "mail")
    assert refused.code == 1
    assert refused.err == f"Job {failed} cannot be moved: it is failed.\n"
    assert invoke("move", 10**9, "--to-queue", "mail").code == 4


@on_every_database
def test_jobs_are_rescheduled(using: str, jobs: Jobs) -> None:
    first, second = jobs.ready(2)
    before = jobs.present(using)
    assert invoke("reschedule", first, "--in", "2h").out == f"Job {first}: rescheduled.\n"
    row = ScheduledExecution.objects.using(using).get(pk=first)
    late = portable.aware(row.due_at) - before - 2 * HOUR
    assert timedelta(0) <= late < timedelta(minutes=1)
    told = invoke("reschedule", "--all", "--at", "2031-02-03T10:30+00:00", "--json").json
    assert (told["count"], told["exact"]) == (2, True)
    due = ScheduledExecution.objects.using(using).values_list("due_at", flat=True)
    assert {f"{portable.aware(each):%Y-%m-%d %H:%M}" for each in due} == {"2031-02-03 10:30"}
    assert jobs.ids(ReadyExecution) == []
    assert second in jobs.ids(ScheduledExecution)


@on_every_database
def test_blocked_jobs_that_become_ready_meanwhile_are_not_rescheduled(
    using: str, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_listing, "LOOKED_AT", 1)
    holder, heir, later = (
        stored_id(new)
        for _ in range(3)
        for new in jobs.dialect.enqueue(jobs.connection, [limited_job("a", 1)])
    )
    told = invoke("reschedule", "--state", "ready", "--in", "2h")
    assert told.out == "Rescheduled 1 job.\n"
    assert jobs.ids(ScheduledExecution) == [holder]
    assert jobs.ids(ReadyExecution) == [heir]
    assert jobs.ids(BlockedExecution) == [later]


@on_every_database
def test_jobs_are_enqueued_again(using: str, jobs: Jobs) -> None:
    finished, [failed] = jobs.finished(3), jobs.failed(1)
    assert invoke("copy", failed).out == f"Job {failed}: enqueued again.\n"
    refused = invoke("copy", "--state", "finished")
    assert refused.code == 2
    assert "Copy 3 jobs? Each becomes a new job." in refused.err
    assert invoke("copy", "--state", "finished", "--yes", "--batch-size", "2").out == (
        "Enqueued again 3 jobs.\n"
    )
    assert len(jobs.ids(ReadyExecution)) == 4
    assert finished
    key = JobMetadata(unique=JobKey("tea").stored).text()
    [holder] = jobs.ready(1, metadata=key)
    refused = invoke("copy", holder)
    assert refused.code == 1
    assert f"Job {holder} cannot be copied: job {holder} has its unique key, 'tea'." in refused.err


@pytest.mark.parametrize("using", ["default"])
@pytest.mark.django_db
def test_what_makes_no_sense_is_refused(using: str, jobs: Jobs) -> None:
    [ready] = jobs.ready(1)
    for options, told in {
        ("move", ready): "Say where to",
        ("move", ready, "--to-queue", ""): "is empty",
        ("move", ready, "--to-queue", "a\nb"): "contains control",
        ("move", ready, "--to-priority", "101"): "from -100 to 100",
        ("move", "--to-queue", "mail"): "takes either ids, or options",
        ("reschedule", ready): "Say when",
        ("reschedule", ready, "--in", "1h", "--at", "2031-02-03T10:30"): "Say when",
        ("copy",): "takes either ids, or options",
    }.items():
        refused = invoke(*options)
        assert refused.code == 2, options
        assert told in refused.err, options
    for time in ("soon", "2031-99-03T10:30"):
        with pytest.raises(CommandError, match="is not a point in time"):
            invoke("reschedule", ready, "--at", time)
    assert jobs.ids(ReadyExecution) == [ready]
