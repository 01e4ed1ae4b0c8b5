"""``status`` and ``queues``."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from steady_queue_core.listings import counts, queues
from steady_queue_core.models import Process, Queue
from steady_queue_core.models.process import register

from ..models.everywhere import Jobs, on_every_database
from ..models.recurrence import greet, tasks
from .invoking import Told, invoke, on_two_databases


def queue(told: Told, name: str) -> Any:
    assert told.code == 0, told
    [database] = told.json["databases"]
    [found] = [each for each in database["queues"] if each["queue"] == name]
    return found


def worker(using: str, *names: str, **fields: Any) -> Process:
    register(
        using, kind="worker", name=f"worker {names}", pid=17, hostname="here", supervisor_id=None,
        metadata=json.dumps({"queues": names, "threads": 3}),
    )  # fmt: skip
    return Process.objects.using(using).get(name=f"worker {names}")


@on_every_database
def test_each_queue_is_shown_with_its_jobs_and_workers(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)
    jobs = Jobs(using)
    jobs.failed(2, queue_name="mail")
    jobs.claimed(queue_name="mail")
    jobs.ready(3, queue_name="mail")
    jobs.ready(1, queue_name="etl")
    greet.using(queue_name="etl", run_after=timedelta(hours=1)).enqueue()
    Queue("reports", using).pause()
    worker(using, "mai*", "idle")

    told = invoke("status", "--json")
    assert told.code == 0
    mail = queue(told, "mail")
    assert [mail[state]["count"] for state in ("ready", "running", "failed")] == [3, 1, 2]
    assert mail["ready"]["exact"]
    assert 0 <= mail["oldest_wait_s"] < 60
    assert mail["workers"] == 1
    etl = queue(told, "etl")
    assert [etl[state]["count"] for state in ("ready", "scheduled")] == [1, 1]
    assert etl["workers"] == 0
    assert queue(told, "reports")["paused"]
    assert queue(told, "reports")["paused_since"].endswith("+00:00")
    assert queue(told, "idle")["workers"] == 1
    assert told.code == 0, told
    [database] = told.json["databases"]
    assert database["database"] == using
    assert database["backends"] == ["default"]
    assert database["processes"] == {"live": 2, "stale": 0}

    shown = invoke("status").lines
    [line] = [each for each in shown if each.startswith("etl")]
    assert line.endswith("none     <- no live worker serves this queue")
    assert "paused: reports" in shown
    assert "processes: 2 live, 0 stale" in shown
    names = [each.split()[0] for each in invoke("queues").lines]
    assert names == ["queue", "etl", "idle", "mail", "reports"]


@pytest.mark.django_db
def test_nothing_is_counted_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Jobs("default")
    jobs.failed(4)
    jobs.ready(5)
    monkeypatch.setattr(counts, "CAP", 3)
    monkeypatch.setattr(queues, "CAP", 3)
    found = queue(invoke("queues", "--json"), "default")
    assert found["ready"] == {"count": 3, "exact": False}
    assert not found["failed"]["exact"]
    [line] = [each for each in invoke("queues").lines if each.startswith("default")]
    assert "3+" in line


@pytest.mark.django_db
def test_more_queues_than_one_statement_counts_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "MOST_AT_ONCE", 2)
    names = [f"queue-{number}" for number in range(5)]
    jobs = Jobs("default")
    for number, name in enumerate(names):
        jobs.ready(number + 1, queue_name=name)
    shown = {each["queue"]: each["ready"]["count"] for each in
             invoke("queues", "--json").json["databases"][0]["queues"]}  # fmt: skip
    assert shown == {name: number + 1 for number, name in enumerate(names)}


@pytest.mark.django_db
def test_a_worker_that_is_silent_or_excludes_a_queue_does_not_serve_it() -> None:
    Jobs("default").ready(queue_name="mail")
    Process.objects.all().delete()
    assert queue(invoke("queues", "--json"), "mail")["workers"] == 0
    silent = worker("default", "mail")
    assert queue(invoke("queues", "--json"), "mail")["workers"] == 1
    silent.last_heartbeat_at -= timedelta(hours=1)
    silent.save()
    assert queue(invoke("queues", "--json"), "mail")["workers"] == 0
    worker("default", "!mail")
    assert queue(invoke("queues", "--json"), "mail")["workers"] == 0
    worker("default", "etl")
    assert queue(invoke("queues", "--json"), "mail")["workers"] == 0
    worker("default", "*")
    assert queue(invoke("queues", "--json"), "mail")["workers"] == 1


@pytest.mark.django_db
def test_names_of_queues_cannot_control_the_terminal() -> None:
    Queue("a\x1b[31m\nb").pause()
    shown = invoke("status").out
    assert "\x1b" not in shown
    assert "a\\x1b[31m\\nb" in shown


@on_two_databases
def test_several_databases_are_all_shown_and_named(other: str, settings: Any) -> None:
    one, another = tasks("default"), tasks(other)
    settings.TASKS = one | {"archive": another["default"]}
    Queue("here", "default").pause()
    Queue("there", other).pause()
    assert [each["database"] for each in invoke("status", "--json").json["databases"]] == [
        "default",
        other,
    ]
    shown = invoke("status").lines
    assert "Database default (backend default)" in shown
    assert f"Database {other} (backend archive)" in shown
    [only] = invoke("status", "--json", "--backend", "archive").json["databases"]
    assert [each["queue"] for each in only["queues"]] == ["there"]
    assert "Database" not in invoke("status", "--backend", "archive").out
    wrong = invoke("status", "--json", "--backend", "nope")
    assert wrong.code == 2
    assert wrong.json["problems"][0].startswith("--backend 'nope' is no Steady Queue backend")
