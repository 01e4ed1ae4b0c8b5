"""``jobs`` and ``show``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from steady_queue_core import Batch, task
from steady_queue_core.command_line import jobs as jobs_module
from steady_queue_core.dialects import portable
from steady_queue_core.listings import job_listing
from steady_queue_core.models import FailedExecution, Job

from ..core.driver import Driver
from ..models.everywhere import Jobs, on_every_database
from ..models.recurrence import tasks
from .invoking import invoke, on_two_databases

PATH = "tests.command_line.test_jobs"


@task
def send(what: object = 0, *, password: str = "") -> object:
    """Return, or raise, what it is given."""
    if what == "bad":
        raise ValueError("no\x1b[31m good")
    return what


@task(queue_name="mail")
def remind() -> None:
    """Fail."""
    raise KeyError("key")


def listed(*arguments: object) -> list[int]:
    told = invoke("jobs", *arguments, "--json")
    assert told.code == 0, told
    [database] = told.json["databases"]
    return [each["id"] for each in database["jobs"]]


def ids(*results: Any) -> list[int]:
    return [int(each.id) for each in results]


@on_every_database
def test_jobs_are_found_by_parts_of_their_task_error_and_arguments(
    using: str, settings: Any
) -> None:
    settings.TASKS = tasks(using)
    driver = Driver(using)
    bad, reminder = send.enqueue("bad"), remind.enqueue()
    driver.work()
    secret = send.enqueue("Ada Ümit", password="hunter2")
    assert listed("--search", "EMIN") == ids(reminder)
    assert listed("--search", bad.id) == ids(bad)
    assert listed("--search", "valueerr") == []
    assert listed("--state", "failed", "--search", "valueerr") == ids(bad)
    assert listed("--arguments", "ada ümit") == listed("--arguments", "password=") == ids(secret)
    assert listed("--arguments", "hunter2") == listed("--arguments", "hunt") == []
    assert listed("--arguments", "Ada", "--search", "remind") == []
    told = invoke("discard", "--arguments", "ADA", "--yes", "--json")
    assert told.json["count"] == 1
    assert listed() == ids(reminder, bad)


@on_every_database
def test_jobs_are_chosen_by_state_queue_task_and_error(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    driver = Driver(using)
    bad, reminder, good = send.enqueue("bad"), remind.enqueue(), send.enqueue(7)
    driver.work()
    later = send.using(run_after=timedelta(hours=1)).enqueue()
    ready = send.enqueue()
    assert listed() == ids(ready, later, good, reminder, bad)
    assert set(listed("--state", "failed")) == set(ids(bad, reminder))
    assert listed("--state", "finished") == ids(good)
    assert listed("--state", "scheduled") == ids(later)
    assert listed("--queue", "mail") == ids(reminder)
    assert listed("--task", f"{PATH}.send") == ids(ready, later, good, bad)
    for error in ("ValueError", "builtins.ValueError"):
        assert listed("--error", error) == ids(bad)
    assert listed("--error", "Error") == []
    assert listed("--error", "KeyError", "--queue", "default") == []
    assert invoke("jobs", "--error", "KeyError", "--state", "ready").code == 2

    shown = invoke("jobs", "--state", "failed").out
    assert "ValueError: no\\x1b[31m good" in shown
    [database] = invoke("jobs", "--queue", "mail", "--json").json["databases"]
    assert database["jobs"][0]["error"]["class"] == "builtins.KeyError"
    assert database["next"] is None


@on_every_database
def test_jobs_are_chosen_by_time(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    driver = Driver(using)
    old, new = send.enqueue("bad"), send.enqueue("bad")
    driver.work()
    present = Jobs.present(using)
    Job.objects.using(using).filter(pk=old.id).update(
        enqueued_at=portable.storable(present - timedelta(days=2))
    )
    FailedExecution.objects.using(using).filter(pk=new.id).update(
        created_at=portable.storable(present - timedelta(days=3))
    )
    assert listed("--since", "24h") == ids(new)
    assert listed("--until", "1d") == ids(old)
    assert listed("--state", "failed", "--since", "24h") == ids(old)
    assert listed("--state", "failed", "--until", "1d") == ids(new)
    assert listed("--state", "failed", "--since", "4d", "--until", "1d") == ids(new)
    assert listed("--since", (present - timedelta(days=1)).isoformat()) == ids(new)
    local = timezone.localtime(present - timedelta(days=1)).replace(tzinfo=None)
    assert listed("--until", local.isoformat()) == ids(old)


@on_every_database
def test_a_list_goes_on_where_it_has_ended(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    jobs = Jobs(using)
    for arguments, expected in (
        ([], sorted(jobs.ready(5), reverse=True)),
        (["--state", "failed"], None),
        (["--state", "ready"], None),
    ):
        if expected is None:
            jobs.failed(5)
            jobs.ready(5)
            expected = listed(*arguments)
        found, cursor = [], ""
        while True:
            told = invoke("jobs", *arguments, "--limit", 2, "--after", cursor, "--json")
            [database] = told.json["databases"]
            found += [each["id"] for each in database["jobs"]]
            cursor = database["next"]
            if cursor is None:
                break
            assert len(database["jobs"]) == 2
        assert found == expected
    assert invoke("jobs", "--limit", 1).lines[-1].startswith("More with --after 'after[")


@pytest.mark.django_db
def test_a_list_goes_on_only_where_one_of_its_kind_has_ended() -> None:
    Jobs("default").ready(3)
    cursor = invoke("jobs", "--limit", 1, "--json").json["databases"][0]["next"]
    for given in ("after", "after[1,", "after[1]x", "1", "after[2]\0"):
        told = invoke("jobs", "--after", given)
        assert told.code == 2, given
        assert "is not where this list goes on" in told.err
    told = invoke("jobs", "--state", "scheduled", "--after", 'after["yesterday", 1, 2]', "--json")
    assert told.code == 2
    assert invoke("jobs", "--state", "ready", "--after", cursor).code == 2
    assert len(invoke("jobs", "--after", cursor, "--json").json["databases"][0]["jobs"]) == 2


@pytest.mark.django_db
def test_a_search_without_an_index_is_bounded_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Jobs("default")
    first = jobs.ready(queue_name="rare")
    jobs.ready(30)
    monkeypatch.setattr(job_listing, "LOOKED_AT", 4)
    monkeypatch.setattr(jobs_module, "MOST_PAGES", 3)
    told = invoke("jobs", "--queue", "rare", "--json")
    [database] = told.json["databases"]
    assert (database["jobs"], database["unfinished"]) == ([], True)
    assert invoke("jobs", "--queue", "rare").lines[0] == "No such job was found so far."
    cursor, found = "", []
    while cursor is not None:
        told = invoke("jobs", "--queue", "rare", "--after", cursor, "--json")
        [database] = told.json["databases"]
        found += [each["id"] for each in database["jobs"]]
        cursor = database["next"]
    assert found == first


@on_every_database
def test_jobs_are_chosen_by_their_batch(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    with Batch("shops") as batch:
        member = send.enqueue()
    send.enqueue()
    assert listed("--batch", batch.id) == ids(member)
    assert listed("--batch", 4711) == []
    [told] = shown(member.id)["jobs"]
    assert told["batch"] == int(batch.id)


def shown(*arguments: object) -> Any:
    told = invoke("show", *arguments, "--json")
    assert told.code == 0, told
    return told.json


@on_every_database
def test_a_job_is_shown_without_secrets(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    result = send.enqueue("bad", password="hunter2")
    Driver(using).work()
    [told] = shown(result.id)["jobs"]
    assert told["state"] == "failed"
    assert told["args"] == ["bad"]
    assert told["kwargs"] == {"password": "*" * 20}
    assert told["errors"] == [{"class": "builtins.ValueError"}]
    assert len(told["workers"]) == 1
    [told] = shown(result.id, "--traceback")["jobs"]
    assert "raise ValueError" in told["errors"][0]["traceback"]
    text = invoke("show", f"#{result.id}").out
    assert "raise ValueError" not in text
    assert "raise ValueError" in (full := invoke("show", result.id, "--traceback").out)
    assert "password='********************'" in text
    assert "hunter2" not in text + full
    assert "\x1b" not in text + full


@pytest.mark.django_db(transaction=True)
def test_a_result_is_shown_and_what_json_does_not_know() -> None:
    moment = timezone.now()
    result = send.enqueue((1.5, moment))
    Driver().work()
    [told] = shown(result.id)["jobs"]
    assert told["args"] == [[1.5, str(moment)]]
    assert told["result"] == [1.5, str(moment)]
    assert "result:" in invoke("show", result.id).out


@pytest.mark.django_db
def test_a_job_that_does_not_exist_is_named_beside_the_others() -> None:
    result = send.enqueue()
    told = invoke("show", 4711, result.id, "--json")
    assert told.code == 4
    assert [each["id"] for each in told.json["jobs"]] == [int(result.id)]
    assert told.json["problems"] == ["There is no job 4711."]
    assert told.err == "There is no job 4711.\n"


@pytest.mark.django_db
def test_a_running_job_names_its_process() -> None:
    driver = Driver()
    result = send.enqueue()
    driver.claim()
    [told] = shown(result.id)["jobs"]
    assert (told["state"], told["process"]) == ("running", driver.name)
    assert driver.name in invoke("jobs", "--state", "running").out


@pytest.mark.django_db
def test_damaged_jobs_are_listed_and_shown_as_far_as_they_can_be() -> None:
    from django.db import connection

    results = [send.enqueue(), send.enqueue(), send.enqueue()]
    Job.objects.filter(pk=results[0].id).update(arguments="{", errors="[", worker_ids="[")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE steady_queue_jobs SET task_path = CAST(x'ff' AS TEXT) WHERE id = %s",
            [results[1].id],
        )
    assert listed() == sorted(ids(*results), reverse=True)
    assert "(damaged)" in invoke("jobs").out
    [told] = shown(results[0].id)["jobs"]
    assert told["arguments_note"] == "The stored 1 characters cannot be decoded."
    damaged = invoke("show", results[1].id)
    assert (damaged.code, damaged.err) == (1, f"The row of job {results[1].id} is damaged.\n")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "damage", ["expires_at = x'00ff'", "job_id = 'abc'", "job_id = CAST(x'ff' AS TEXT)"]
)
def test_a_damaged_row_of_a_feature_hides_nothing_else_of_its_job(damage: str) -> None:
    from django.db import connection

    results = [send.using(unique=True, retention="forever").enqueue(), send.enqueue()]
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA defer_foreign_keys = ON")
        cursor.execute(f"UPDATE steady_queue_unique_keys SET {damage}")
    told = invoke("show", *[each.id for each in results])
    assert told.code == 0
    assert "unique key:      (its row is damaged)" in told.out
    assert "kept:            forever after success" in told.out
    assert f"Job {results[1].id}: " in told.out
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM steady_queue_unique_keys")


@on_two_databases
def test_of_several_databases_one_has_to_be_chosen_to_go_on(other: str, settings: Any) -> None:
    one, another = tasks("default"), tasks(other)
    settings.TASKS = one | {"archive": another["default"]}
    assert len(invoke("jobs", "--json").json["databases"]) == 2
    for arguments in (["jobs", "--after", "after[1]"], ["show", "1"]):
        told = invoke(*arguments)
        assert told.code == 2
        assert "Choose one with --backend archive|default" in told.err
        assert invoke(*arguments, "--backend", "archive").code in (0, 4)


def test_wrong_options_say_how_to_mend_them() -> None:
    for arguments, message in (
        (["--since", "soon"], "neither a duration such as 90s"),
        (["--since", "2026-02-31T00:00"], "neither a duration such as 90s"),
        (["--batch", "x"], "'x' is not the id"),
        (["--limit", "0"], "'0' is not a number of at least 1"),
        (["--state", "nope"], "invalid choice: 'nope'"),
        (["--search", " "], "' ' is no text to search for"),
        (["--arguments", "a\0"], "is no text to search for"),
        (["--queue", "a\0"], "contains characters that no name has"),
    ):
        told = wrong("jobs", *arguments)
        assert message in told


def wrong(*arguments: str) -> str:
    from django.core.management import CommandError, call_command

    with pytest.raises(CommandError) as raised:
        call_command("steady_queue", *arguments)
    return str(raised.value)
