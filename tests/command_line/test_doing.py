"""``pause``, ``resume``, ``enqueue`` and ``clear``."""

from __future__ import annotations

import io
import os
import signal
import sys
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from steady_queue_core import task
from steady_queue_core.command_line import enqueue as enqueue_module
from steady_queue_core.dialects import portable
from steady_queue_core.dynamic_tasks import schedule_recurring_task
from steady_queue_core.models import FailedExecution, Job, Pause, Queue, ScheduledExecution
from steady_queue_core.models.operations.clear import FinishedJobs
from steady_queue_core.models.process import register

from ..core.driver import Driver
from ..core.samples import FRAMEWORK
from ..models.everywhere import Jobs, on_every_database
from ..models.recurrence import tasks
from .invoking import invoke, on_two_databases

PATH = "tests.command_line.test_doing"


@task
def add(a: int, b: int = 0) -> int:
    """Add."""
    if a < 0:
        raise ValueError("negative")
    return a + b


class Answers(io.StringIO):
    """What somebody types at a terminal."""

    def isatty(self) -> bool:
        return True


def refused(*arguments: object) -> str:
    with pytest.raises(CommandError) as raised:
        call_command("steady_queue", *map(str, arguments))
    return str(raised.value)


# --- pause and resume -----------------------------------------------------------------------------


@on_every_database
def test_queues_are_paused_and_resumed(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    assert invoke("pause", "mail", "etl", "--yes").lines == ["mail: paused", "etl: paused"]
    assert Queue("mail", using).paused
    told = invoke("pause", "mail", "--json").json
    assert told["queues"] == [{"queue": "mail", "changed": False}]
    assert invoke("pause", "mail").out == "mail: is paused already\n"
    assert invoke("resume", "mail").out == "mail: open\n"
    assert invoke("resume", "mail").out == "mail: is open already\n"
    names = Pause.objects.using(using).values_list("queue_name", flat=True)
    assert list(names) == ["etl"]


@on_every_database
def test_an_unknown_queue_is_asked_about(
    using: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TASKS = tasks(using)
    add.using(backend="default", queue_name="parcels").enqueue(1)
    told = invoke("pause", "parcels", "parcel", "--json")
    asked = "Nothing knows a queue 'parcel'; did you mean 'parcels'? Pause it all the same?"
    assert told.code == 2
    assert told.json["problems"] == [f"{asked} Nobody can be asked: say --yes."]
    assert not Pause.objects.using(using).exists()
    for answer, code, lines in (("n\n", 1, []), ("y\n", 0, ["parcel: paused"])):
        monkeypatch.setattr(sys, "stdin", Answers(answer))
        told = invoke("pause", "parcel")
        assert (told.code, told.lines) == (code, lines)
        assert told.err.startswith(f"{asked} [y/N]\n")
    assert invoke("pause", "parcel").lines == ["parcel: is paused already"]


@pytest.mark.django_db
def test_queues_that_workers_settings_tasks_and_schedules_name_are_known(settings: Any) -> None:
    settings.STEADY_QUEUE = {"workers": [{"queues": ["set", "tenant-*", "!left", "*"]}]}
    register(
        "default", kind="worker", name="hand", pid=1, hostname="web-1", supervisor_id=None,
        metadata='{"queues": ["served", "customer-*", "*"]}',
    )  # fmt: skip
    schedule_recurring_task("nightly", add, schedule="@daily", args=(1,), queue_name="nights")
    for name in ("set", "tenant-7", "served", "customer-7", "nights", "default", add.queue_name):
        assert invoke("pause", name).code == 0, name
    for name in ("left", "tenant", "custom-7", "other"):
        assert invoke("pause", name).code == 2, name
        assert invoke("pause", name, "--yes").code == 0, name


@pytest.mark.django_db
def test_a_queue_is_paused_in_a_project_that_is_broken(settings: Any) -> None:
    settings.STEADY_QUEUE = {"task_modules": "no.such.module"}
    assert invoke("pause", "other").code == 2
    assert invoke("pause", "other", "--yes").code == 0


@pytest.mark.django_db
def test_an_unknown_queue_that_is_open_is_told() -> None:
    add.using(queue_name="parcels").enqueue(1)
    told = invoke("resume", "parcel")
    assert (told.code, told.out) == (0, "parcel: is open already\n")
    assert told.err == "Nothing knows a queue 'parcel'; did you mean 'parcels'?\n"
    assert invoke("resume", "parcels").err == ""


def test_no_queue_has_a_name_that_cannot_be() -> None:
    assert "no queue has the name ' x'" in refused("pause", " x")
    assert "required: QUEUE" in refused("pause")


@on_two_databases
def test_of_several_databases_one_has_to_be_chosen(other: str, settings: Any) -> None:
    one, another = tasks("default"), tasks(other)
    settings.TASKS = one | {"archive": another["default"]}
    for arguments in (["pause", "mail"], ["resume", "mail"], ["clear", "--older-than", "7d"]):
        assert invoke(*arguments).code == 2
    assert invoke("pause", "mail", "--backend", "archive", "--yes").code == 0
    assert Queue("mail", other).paused
    assert not Queue("mail", "default").paused


# --- enqueue --------------------------------------------------------------------------------------


@on_every_database
def test_a_task_is_enqueued_with_its_options(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    told = invoke(
        "enqueue", f"{PATH}.add", "--args", "[1]", "--kwargs", '{"b": 2}', "--queue", "mail",
        "--priority", -5, "--in", "10m", "--json",
    )  # fmt: skip
    job = Job.objects.using(using).get()
    assert told.json["job"] == job.pk
    assert told.json["enqueued"]
    assert (job.queue_name, job.priority) == ("mail", -5)
    due = ScheduledExecution.objects.using(using).get().due_at
    left = portable.aware(due) - Jobs.present(using)
    assert timedelta(minutes=9) < left <= timedelta(minutes=10)


@pytest.mark.django_db(transaction=True)
def test_the_result_of_a_task_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    original = enqueue_module._wait

    def wait(*arguments: Any) -> int:
        driver.work()
        return original(*arguments)

    monkeypatch.setattr(enqueue_module, "_wait", wait)
    told = invoke("enqueue", f"{PATH}.add", "--args", "[1, 2]", "--wait", "--json")
    assert (told.code, told.json["result"], told.json["status"]) == (0, 3, "SUCCESSFUL")
    assert invoke("enqueue", f"{PATH}.add", "--args", "[1, 2]", "--wait", "9s").out == "3\n"
    told = invoke("enqueue", f"{PATH}.add", "--args", "[-1]", "--wait", "--json")
    assert (told.code, told.json["status"]) == (1, "FAILED")
    assert told.json["problems"][0].endswith("has failed: builtins.ValueError")


@pytest.mark.django_db(transaction=True)
def test_a_job_that_is_not_kept_has_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    original = enqueue_module._wait

    def wait(*arguments: Any) -> int:
        Job.objects.all().delete()
        return original(*arguments)

    monkeypatch.setattr(enqueue_module, "_wait", wait)
    told = invoke("enqueue", f"{PATH}.add", "--args", "[1, 2]", "--wait", "--json")
    assert (told.code, told.json["enqueued"], told.json["status"]) == (1, True, None)
    assert told.json["problems"] == [
        f"Job {told.json['job']} is gone: it has ended and is not kept, or was deleted."
    ]


@pytest.mark.django_db(transaction=True)
def test_waiting_has_a_limit() -> None:
    told = invoke("enqueue", f"{PATH}.add", "--args", "[1]", "--wait", "0.1", "--json")
    assert (told.code, told.json["status"]) == (1, "READY")
    assert told.json["job"] == Job.objects.get().pk


@pytest.mark.django_db
def test_calls_that_cannot_be_say_why(settings: Any) -> None:
    path = f"{PATH}.add"
    theirs = {"BACKEND": f"{FRAMEWORK}.backends.dummy.DummyBackend"}
    settings.TASKS = {**settings.TASKS, "theirs": theirs}
    told = invoke("enqueue", f"{PATH}.ad", "--json")
    assert told.code == 4
    assert told.json["problems"] == [f"There is no task '{PATH}.ad'; did you mean '{path}'?"]
    for arguments, message in (
        ([], "missing a required argument: 'a'"),
        (["--args", "[1]", "--priority", "1000"], "riority"),
        (["--args", "[1]", "--queue", " "], "ueue"),
        (["--args", "[1]", "--backend", "none"], "none"),
        (["--args", "[1]", "--backend", "theirs"], "'theirs' is no Steady Queue backend in TASKS."),
    ):
        told = invoke("enqueue", path, *arguments)
        assert told.code == 2, told
        assert message in told.err
    for arguments, message in (
        (["--args", "1"], "is not a JSON list"),
        (["--kwargs", "[]"], "is not a JSON object"),
        (["--args", "[1"], "is not JSON"),
        (["--in", "soon"], "is no duration"),
    ):
        assert message in refused("enqueue", path, *arguments)
    assert Job.objects.count() == 0


# --- clear ----------------------------------------------------------------------------------------


def age(using: str, days: int) -> None:
    """Let all jobs that have ended have done so some days earlier."""
    for job in Job.objects.using(using).exclude(finished_at=None):
        job.finished_at -= timedelta(days=days)
        job.save(using=using)
    for row in FailedExecution.objects.using(using):
        row.created_at -= timedelta(days=days)
        row.save(using=using)


@on_every_database
def test_jobs_that_ended_long_ago_are_deleted(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    jobs = Jobs(using)
    old, failed = jobs.finished(3), jobs.failed(2)
    age(using, 8)
    new = [*jobs.finished(1), *jobs.failed(1)]
    assert invoke("clear", "--older-than", "7d", "--dry-run").out == (
        "At most 3 jobs would be deleted.\n"
    )
    told = invoke("clear", "--older-than", "7d", "--include-failed", "--dry-run", "--json").json
    assert (told["count"], told["exact"], told["dry_run"]) == (5, True, True)
    assert len(jobs.ids(Job)) == 7
    assert invoke("clear", "--older-than", "7d", "--yes", "--batch-size", 2).out == (
        "Deleted 3 jobs.\n"
    )
    assert jobs.ids(Job) == sorted([*failed, *new])
    assert old
    told = invoke("clear", "--older-than", "7d", "--include-failed", "--yes", "--json").json
    assert told["count"] == 2
    assert jobs.ids(Job) == sorted(new)


@pytest.mark.django_db
def test_the_former_name_of_clear_works_and_says_so() -> None:
    told = invoke("prune", "--older-than", "7d", "--json")
    assert (told.code, told.json["count"]) == (0, 0)
    assert told.err == "prune is called clear now: the old name goes soon.\n"


@pytest.mark.django_db
def test_clearing_asks_first_and_needs_an_age(monkeypatch: pytest.MonkeyPatch) -> None:
    Jobs("default").finished(1)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    told = invoke("clear", "--older-than", "0")
    assert told.code == 2
    assert told.err.startswith("Delete 1 job? This cannot be undone. Nobody can be asked")
    assert "required: --older-than" in refused("clear")
    assert "is no duration" in refused("clear", "--older-than", "soon")
    assert Job.objects.count() == 1
    assert invoke("clear", "--older-than", "7d").out == "Deleted 0 jobs.\n"


@pytest.mark.django_db
def test_ctrl_c_ends_clearing_between_two_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    Jobs("default").finished(5)
    clear = FinishedJobs.clear

    def interrupted(self: FinishedJobs, size: int) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return clear(self, size)

    monkeypatch.setattr(FinishedJobs, "clear", interrupted)
    told = invoke("clear", "--older-than", "0", "--yes", "--batch-size", 2)
    assert (told.code, told.err) == (130, "Deleted 2 jobs, then interrupted: there may be more.\n")
    assert Job.objects.count() == 3
