"""``errors``, and what is done with a group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from steady_queue_core import task
from steady_queue_core.fingerprint import fingerprint_of
from steady_queue_core.listings import error_groups
from steady_queue_core.models import FailedExecution, Job, ReadyExecution

from ..core.driver import Driver
from ..models.everywhere import on_every_database
from ..models.recurrence import tasks
from .invoking import invoke, on_two_databases

PATH = "tests.command_line.test_errors"


@task
def send(message: str) -> None:
    """Fail."""
    raise ValueError(message)


@task(queue_name="mail")
def remind() -> None:
    """Fail."""
    raise KeyError("key")


def group(message: str) -> str:
    return fingerprint_of("builtins.ValueError", message, f"{PATH}.send")


@on_every_database
def test_groups_are_listed_with_their_numbers_times_and_tasks(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    results = [send.enqueue(f"no order {number}") for number in (17, 18)]
    results.append(remind.enqueue())
    Driver(using).work()

    told = invoke("errors", "--json")
    assert told.code == 0
    [database] = told.json["databases"]
    assert {name: database[name] for name in ("has_more", "complete", "ungrouped")} == {
        "has_more": False, "complete": True, "ungrouped": 0,
    }  # fmt: skip
    first, second = database["groups"]
    assert first["group"] == group("no order 1")
    assert first["failed"] == {"count": 2, "exact": True}
    assert first["task"] == f"{PATH}.send"
    assert first["error"] == {"class": "builtins.ValueError", "message": "no order 18"}
    assert first["job"] == int(results[1].id)
    times = [datetime.fromisoformat(first[name]) for name in ("first_at", "last_at")]
    assert times == sorted(times)
    assert times[0].utcoffset() is not None
    assert second["error"] == {"class": "builtins.KeyError", "message": "'key'"}

    lines = invoke("errors").lines
    assert lines[0].split() == ["group", "failed", "first", "last", "task"]
    assert lines[1].split()[:2] == [group("no order 1"), "2"]
    assert lines[1].endswith("ValueError: no order 18")
    limited = invoke("errors", "--limit", "1").lines
    assert [each.split() for each in limited[:2]] == [each.split() for each in lines[:2]]
    assert limited[2:] == ["There are more groups: see --limit."]
    assert len(invoke("errors", "--queue", "mail").lines) == 2
    assert len(invoke("errors", "--task", f"{PATH}.send").lines) == 2
    assert invoke("errors", "--queue", "none").lines == ["No such job has failed."]


@on_every_database
def test_a_group_is_listed_retried_and_discarded_as_a_whole(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    one, two, other = (send.enqueue(each) for each in ("no order 1", "no order 2", "no"))
    Driver(using).work()
    wanted = ["--error-group", group("no order 3")]
    told = invoke("jobs", *wanted, "--json")
    [database] = told.json["databases"]
    assert [each["id"] for each in database["jobs"]] == [int(two.id), int(one.id)]
    assert {each["error"]["group"] for each in database["jobs"]} == {group("no order 1")}
    assert f"error group:     {group('no')}" in invoke("show", other.id).out

    assert invoke("retry", *wanted, "--dry-run").lines == ["2 jobs would be retried."]
    assert invoke("retry", *wanted, "--queue", "mail", "--yes").lines == ["Retried 0 jobs."]
    assert invoke("retry", *wanted, "--yes").lines == ["Retried 2 jobs."]
    ready = ReadyExecution.objects.using(using).order_by("pk").values_list("pk", flat=True)
    assert list(ready) == [int(one.id), int(two.id)]
    Driver(using).work()
    assert invoke("discard", *wanted, "--yes").lines == ["Discarded 2 jobs."]
    assert [job.pk for job in Job.objects.using(using)] == [int(other.id)]


@pytest.mark.parametrize("command", ["jobs", "retry", "discard"])
def test_a_group_that_is_none_is_wrong_usage(command: str) -> None:
    with pytest.raises(CommandError) as raised:
        call_command("steady_queue", command, "--error-group", "ValueError")
    assert str(raised.value) == (
        "Error: argument --error-group: 'ValueError' is no group of errors: a group has 16 "
        "hexadecimal digits, which the subcommand errors shows"
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("command", [["jobs"], ["discard", "--yes"]])
def test_a_group_has_failed_jobs_alone(command: list[str]) -> None:
    told = invoke(*command, "--error-group", "0" * 16, "--state", "ready")
    assert told.code == 2
    assert "--error-group is for failed jobs, not for --state ready." in told.err


@pytest.mark.django_db(transaction=True)
def test_what_was_not_looked_at_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        send.enqueue("no")
    remind.enqueue()
    Driver().work()
    monkeypatch.setattr(error_groups, "CAP", 2)
    FailedExecution.objects.filter(job__queue_name="mail").update(fingerprint=None)
    lines = invoke("errors").lines
    assert lines[1].split()[:2] == [group("no"), "2+"]
    assert lines[2:] == [
        "1 job belongs to no group.",
        "Only the 10,000 newest failures were looked at.",
    ]
    assert invoke("errors", "--queue", "none").lines == [
        "No such job has failed lately.",
        "Only the 10,000 newest failures were looked at.",
    ]


@pytest.mark.django_db(transaction=True)
def test_what_a_message_says_cannot_control_the_terminal() -> None:
    send.enqueue("no\x1b[31m \u202egood\nsecond line")
    Driver().work()
    out = invoke("errors").out
    assert out.rstrip().endswith("ValueError: no\\x1b[31m \\u202egood")


@on_two_databases
def test_each_database_has_groups_of_its_own(other: str, settings: Any) -> None:
    settings.TASKS = tasks("default") | {"archive": tasks(other)["default"]}
    send.enqueue("here")
    send.using(backend="archive").enqueue("there")
    for using in ("default", other):
        Driver(using).work()
    databases = invoke("errors", "--json").json["databases"]
    found = {each["database"]: each["groups"] for each in databases}
    messages = {using: [each["error"]["message"] for each in found[using]] for using in found}
    assert messages == {"default": ["here"], other: ["there"]}
    lines = invoke("errors", "--backend", "archive").lines
    assert [line.split()[-1] for line in lines[1:]] == ["there"]
