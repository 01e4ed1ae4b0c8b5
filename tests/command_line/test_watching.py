"""``watch``, ``health`` and ``completion``."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connections

from steady_queue_core.command_line import completion, registry, watch
from steady_queue_core.command_line.status import Snapshot
from steady_queue_core.listings import queues
from steady_queue_core.models import Process, Queue, ReadyExecution
from steady_queue_core.models.process import register

from ..models.everywhere import Jobs, on_every_database
from ..models.recurrence import tasks
from .invoking import environment, invoke, run

# --- watch ----------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_status_is_printed_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch.time, "sleep", lambda seconds: Queue("mail").pause())
    looks = invoke("watch", "--times", 2).out.split("\n\n")
    assert "paused: none" in looks[0]
    assert "paused: mail" in looks[1]


@pytest.mark.django_db
def test_an_outage_is_shown_and_outlasted(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([OperationalError("gone\n"), None])
    of = Snapshot.of

    def look(using: str) -> Snapshot:
        answer = next(answers)
        if answer is not None:
            raise answer
        return of(using)

    monkeypatch.setattr(Snapshot, "of", look)
    monkeypatch.setattr(type(connections["default"]), "close", lambda self: None)
    monkeypatch.setattr(watch.time, "sleep", lambda seconds: None)
    told = invoke("watch", "--times", 2)
    assert told.code == 0
    assert "The database reports an error: gone\n" in told.out
    assert "No queue has jobs." in told.out


@pytest.mark.django_db
def test_a_live_view_is_used_where_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Screen:
        def __enter__(self) -> Screen:
            return self

        def __exit__(self, *exception: object) -> None:
            shown.append("end")

        def update(self, text: str, *, refresh: bool) -> None:
            shown.append(text)

    assert hasattr(watch._screen(), "update")
    monkeypatch.setattr(watch, "_screen", Screen)
    assert invoke("watch", "--times", 1, terminal=True).out == ""
    assert "processes: 0 live" in shown[0]
    assert shown[1] == "end"
    monkeypatch.setattr(watch, "_screen", lambda: None)
    assert "processes: 0 live" in invoke("watch", "--times", 1, terminal=True).out


@pytest.mark.django_db(transaction=True)
def test_ctrl_c_ends_watching_with_0(workspace: Path) -> None:
    watching = subprocess.Popen(
        [sys.executable, "-m", "steady_queue_core", "watch", "--interval", "0.1"],
        cwd=workspace, env=environment(connections["default"].settings_dict["NAME"]),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert watching.stdout
    while "processes:" not in watching.stdout.readline():
        assert watching.poll() is None
    watching.send_signal(signal.SIGINT)
    _, problems = watching.communicate(timeout=60)
    assert (watching.returncode, problems) == (0, "")


@pytest.mark.django_db(transaction=True)
def test_on_a_real_terminal_the_view_stays_in_its_place(workspace: Path) -> None:
    Queue("mail\x1b[31m[b]").pause()
    terminal, screen = os.openpty()
    watching = subprocess.Popen(
        [sys.executable, "-m", "steady_queue_core", "watch", "--interval", "0.1"],
        cwd=workspace,
        env=environment(connections["default"].settings_dict["NAME"]) | {"TERM": "xterm"},
        stdin=screen, stdout=screen, stderr=screen,
    )  # fmt: skip
    os.close(screen)
    shown = b""
    try:
        while b"processes: 0 live" not in shown:
            shown += os.read(terminal, 4096)
        watching.send_signal(signal.SIGINT)
        with suppress(OSError):  # What Linux says of a terminal that nobody has open.
            while part := os.read(terminal, 4096):
                shown += part
        assert watching.wait(60) == 0
    finally:
        os.close(terminal)
    assert b"\x1b[?1049h" in shown  # The alternate screen,
    assert b"\x1b[?1049l" in shown  # and back.
    assert rb"mail\x1b[31m[b]" in shown
    assert b"Traceback" not in shown


# --- health ---------------------------------------------------------------------------------------


def process(using: str, kind: str, **fields: Any) -> Process:
    identity = register(
        using, kind=kind, name=f"{kind}-1", pid=1, hostname="here", supervisor_id=None,
        metadata='{"queues": ["mail"], "threads": 1}',
    )  # fmt: skip
    return Process.objects.using(using).get(pk=identity.id)


def silence(row: Process, using: str) -> None:
    row.last_heartbeat_at -= timedelta(hours=1)
    row.save(using=using)


def problems(*arguments: object) -> list[str]:
    told = invoke("health", *arguments, "--json")
    assert told.code == (1 if told.json["problems"] else 0)
    assert told.json["ok"] == (not told.json["problems"])
    found: list[str] = told.json["problems"]
    return found


@on_every_database
def test_processes_have_to_live(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    assert problems("--live") == [f"database {using}: no supervisor lives"]
    assert problems() == problems("--ready") == [f"database {using}: no worker lives"]
    supervisor, worker = process(using, "supervisor"), process(using, "worker")
    assert problems("--live", "--ready") == []
    assert invoke("health").out == "Healthy.\n"
    silence(supervisor, using)
    silence(worker, using)
    assert len(problems("--live", "--ready")) == 2


@on_every_database
def test_queues_have_to_be_served_in_time(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    jobs = Jobs(using)
    jobs.failed(2, queue_name="mail")
    jobs.ready(queue_name="mail")
    Process.objects.using(using).all().delete()
    process(using, "worker")
    past = jobs.present(using) - timedelta(minutes=6)
    for row in ReadyExecution.objects.using(using):
        row.created_at = past.replace(tzinfo=row.created_at.tzinfo)
        row.save(using=using)
    assert problems("--max-wait", "10m", "--max-failed", 2) == []
    [waits] = problems("--max-wait", "5m")
    assert re.fullmatch(r"the queue mail waits 6 min( \d+ s)?, over 5 min", waits)
    assert problems("--max-failed", 1) == [f"database {using}: 2 jobs have failed, over 1"]
    assert problems("--max-failed", 1, "--max-wait", "5m", "--queue", "mail") != []
    assert problems("--max-failed", 1, "--live", "--queue", "idle")[1:] == []
    Queue("mail", using).pause()
    assert problems("--max-wait", "5m") == []
    jobs.ready(queue_name="etl")
    assert problems() == ["no live worker serves the queue etl"]
    assert problems("--queue", "mail") == []
    assert problems("--queue", "nope") == ["no live worker serves the queue nope"]


@on_every_database
def test_more_failures_than_are_counted_by_queue_are_counted_as_far_as_is_asked(
    using: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "CAP", 2)
    settings.TASKS = tasks(using)
    Jobs(using).failed(4, queue_name="mail")
    assert problems("--max-failed", 4) == []
    assert problems("--max-failed", 3) == [f"database {using}: 4+ jobs have failed, over 3"]


@pytest.mark.django_db
def test_a_database_that_does_not_answer_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(using: str) -> None:
        raise OperationalError("no route\n")

    monkeypatch.setattr("steady_queue_core.command_line.databases.require_usable", fail)
    assert problems() == ["no route"]
    assert invoke("health", "--backend", "nope").code == 2


@pytest.mark.django_db
def test_pending_migrations_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "steady_queue_core.command_line.health.pending_migrations", lambda _: ["0099_more"]
    )
    assert problems("--live") == ["database default: migrations are pending: 0099_more"]


def test_a_project_that_was_not_migrated_is_not_healthy(workspace: Path, tmp_path: Path) -> None:
    told = run(workspace, environment(tmp_path / "t.sqlite3"), "health", "--json")
    assert told.code == 1
    assert "lacks the tables" in told.json["problems"][0]


# --- completion -----------------------------------------------------------------------------------

ASK = """
COMP_WORDS=({words})
COMP_CWORD={position}
_steady_queue
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(script: str, *words: str) -> list[str]:
    """Return how bash completes the last of these words."""
    quoted = " ".join(f"'{word}'" for word in words)
    asked = ASK.format(words=quoted, position=len(words) - 1)
    told = subprocess.run(
        ["bash", "--norc", "-c", f"{script}{asked}"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert told.stderr == ""
    return told.stdout.split()


def test_bash_completes_subcommands_options_and_choices() -> None:
    script = invoke("completion", "bash").out
    assert completed(script, "steady-queue", "re") == ["retry", "reschedule", "resume"]
    known = completed(script, "steady-queue", "")
    assert {each.name for each in registry.SUBCOMMANDS} | {"start", "demo"} == set(known)
    assert completed(script, "steady-queue", "jobs", "--st") == ["--state"]
    assert completed(script, "steady-queue", "start", "--only") == ["--only"]
    assert completed(script, "steady-queue", "schedules", "dis") == ["disable"]
    assert completed(script, "steady-queue", "completion", "f") == ["fish"]
    assert completed(script, "steady-queue", "nope", "--j") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_scripts_of_other_shells_name_everything(shell: str) -> None:
    script = invoke("completion", shell).out
    for name, words in completion.words().items():
        assert name in script
        for word in words:
            assert word.removeprefix("--") in script
