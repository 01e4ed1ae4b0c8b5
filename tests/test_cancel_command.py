"""``manage.py steady_queue_cancel``."""

from __future__ import annotations

import builtins
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError

from steady_queue_core import task
from steady_queue_core.models import Job

from .core.driver import Driver
from .models.everywhere import on_every_database
from .models.recurrence import tasks

PATH = "tests.test_cancel_command"


@task
def send(what: int = 0) -> None:
    """Do nothing."""


@task(queue_name="mail")
def remind() -> None:
    """Do nothing."""


def cancel(capsys: pytest.CaptureFixture[str], *arguments: Any, **options: Any) -> list[str]:
    """Run the command; return the lines that it prints."""
    call_command("steady_queue_cancel", *map(str, arguments), **options)
    return capsys.readouterr().out.splitlines()


def refused(*arguments: Any, **options: Any) -> str:
    with pytest.raises(CommandError) as raised:
        call_command("steady_queue_cancel", *map(str, arguments), **options)
    return str(raised.value)


def ended(using: str = "default") -> set[str]:
    found = Job.objects.using(using).exclude(finished_at=None).values_list("pk", flat=True)
    return {str(pk) for pk in found}


def answering(monkeypatch: pytest.MonkeyPatch, answer: str | None) -> list[str]:
    """Answer the question of the command; ``None``: its input has ended. Return the questions."""
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        if answer is None:
            raise EOFError
        return answer

    monkeypatch.setattr(builtins, "input", ask)
    return asked


@on_every_database
def test_jobs_are_cancelled_by_their_ids(
    using: str, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.TASKS = tasks(using)
    driver = Driver(using)
    running = send.enqueue()
    [claim] = driver.claim()
    waiting, other = send.enqueue(), send.enqueue()
    told = cancel(capsys, running.id, waiting.id, waiting.id)
    assert told == [f"Job {each.id}: cancelled." for each in (running, waiting)]
    assert Job.objects.using(using).get(pk=claim.job_id).is_cancelled
    assert ended(using) == {waiting.id}
    assert refused(waiting.id, 4711, other.id) == (
        f"Left alone: {waiting.id}, 4711. There is no such job, or it has ended."
    )
    assert ended(using) == {waiting.id, other.id}


@on_every_database
def test_jobs_are_cancelled_by_their_task_and_their_queue(
    using: str, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.TASKS = tasks(using)
    driver = Driver(using)
    sent = [send.enqueue(), send.using(queue_name="mail").enqueue()]
    driver.claim("mail")
    reminder, third = remind.enqueue(), send.enqueue()
    told = cancel(capsys, "--task", f"{PATH}.send", "--queue", "mail", "--yes")
    assert told == ["0 jobs waiting, 1 job running.", "Cancelled 1 job."]
    assert ended(using) == set()
    told = cancel(capsys, "--task", f"{PATH}.send", "--yes")
    assert told == ["2 jobs waiting, 1 job running.", "Cancelled 2 jobs."]
    assert ended(using) == {sent[0].id, third.id}
    told = cancel(capsys, queue="mail", yes=True)
    assert told == ["1 job waiting, 1 job running.", "Cancelled 1 job."]
    assert ended(using) == {sent[0].id, third.id, reminder.id}
    assert cancel(capsys, "--queue", "etl", "--yes") == ["0 jobs waiting, 0 jobs running."]


@pytest.mark.django_db
def test_a_dry_run_cancels_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    results = [send.enqueue(), send.enqueue()]
    told = cancel(capsys, "--task", f"{PATH}.send", "--dry-run")
    assert told == [
        "2 jobs waiting, 0 jobs running.", "Nothing is cancelled: this is a dry run."
    ]  # fmt: skip
    assert cancel(capsys, results[0].id, "--dry-run") == [
        f"Job {results[0].id}: would be cancelled."
    ]
    assert refused("4711", dry_run=True).startswith("Left alone: 4711.")
    assert ended() == set()


@pytest.mark.django_db
def test_it_asks_first(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    result = send.enqueue()
    for answer in ("", "n", "no", "what"):
        asked = answering(monkeypatch, answer)
        assert refused("--task", f"{PATH}.send") == "Nothing was cancelled."
        assert asked == ["Cancel them? [y/N] "]
    answering(monkeypatch, None)
    assert refused("--task", f"{PATH}.send") == ("Nobody can be asked: say --yes, or --dry-run.")
    assert ended() == set()
    answering(monkeypatch, " Yes ")
    assert cancel(capsys, "--task", f"{PATH}.send")[-1] == "Cancelled 1 job."
    assert ended() == {result.id}


@pytest.mark.django_db
def test_wrong_uses_say_how_to_use_it(capsys: pytest.CaptureFixture[str], settings: Any) -> None:
    usage = "Say which jobs: either their ids, or --task PATH, --queue NAME or both of these."
    assert refused() == refused("1", "--queue", "mail") == usage
    with pytest.raises(CommandError, match="'x' is not the id of a job") as raised:
        call_command("steady_queue_cancel", "x")
    assert "argument" in str(raised.value)
    assert refused("--task", f"{PATH}.sent", "--yes") == (
        f"No job waits or runs, and there is no task '{PATH}.sent'; did you mean '{PATH}.send'?"
    )
    assert refused("1", "--backend", "nope").startswith("--backend 'nope' is no Steady Queue")
    one, another = tasks("default"), tasks("other")
    settings.TASKS = one | {"archive": another["default"]}
    assert refused("1") == (
        "The backends in TASKS use several databases (default, other). Choose one with --backend "
        "archive|default."
    )


@pytest.mark.django_db
def test_an_error_of_the_database_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise ProgrammingError("permission denied for table jobs\n")

    monkeypatch.setattr("steady_queue_core.command_line.databases.require_usable", fail)
    with pytest.raises(CommandError) as raised:
        call_command("steady_queue_cancel", "1")
    assert str(raised.value) == "The database reports an error: permission denied for table jobs"
