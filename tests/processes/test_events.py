"""Signals and records of what processes do all the time."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from steady_queue_core import signals
from steady_queue_core.processes.base import events
from steady_queue_core.processes.base.events import Events

from .conftest import MakeProject
from .harness import Project
from .scenarios import SHORT_LEASE, queue
from .waiting import wait_for

NAMES = (
    "process_polled", "jobs_claimed", "jobs_settled", "jobs_dispatched", "jobs_unblocked",
    "process_beat",
)  # fmt: skip
LISTENS = f"""
    import os
    from datetime import timedelta

    from steady_queue_core import signals

    def connect(name):
        def receive(sender, signal, **payload):
            from django.db import connections

            own = payload.pop("pid") == os.getpid() and payload.pop("using") == "default"
            kind = payload.pop("process_kind")
            assert payload.pop("process_name").startswith(kind)
            if "found" in payload and payload["found"] == 0:
                return
            assert payload.pop("duration", timedelta(1)) > timedelta(0)
            if jobs := payload.pop("jobs", None):
                if type(jobs) is int:
                    payload["jobs"] = jobs
                else:
                    payload["jobs"] = [
                        (each.task_id, each.queue_name, each.outcome, each.headers) for each in jobs
                    ]
            with open(BASE_DIR / "events.log", "a") as file:
                file.write(f"{{name}} {{kind}} {{own}} {{payload}}" + chr(10))
            if kind == "worker":  # What is left open must not become part of its work.
                with connections["default"].cursor() as cursor:
                    cursor.execute("BEGIN")

        getattr(signals, name).connect(receive, weak=False)

    for name in {NAMES!r}:
        connect(name)
"""


def events_of(project: Project) -> set[str]:
    path = project.folder / "events.log"
    return set(path.read_text().splitlines()) if path.exists() else set()


def test_the_signals_tell_what_each_process_does(make_project: MakeProject) -> None:
    project = make_project(queue(processes=1, **SHORT_LEASE), extra=LISTENS)
    supervisor = project.start()
    supervisor.wait_ready()
    [now] = project.enqueue("work")
    [later] = project.enqueue("work", delay=0.5)
    project.wait_done(20)
    expected = {
        "process_polled worker True {'found': 1, 'wanted': ",
        f"jobs_claimed worker True {{'task_ids': ['{now}'], 'jobs': [('{now}', 'default', None, {{",
        f"jobs_claimed worker True {{'task_ids': ['{later}'], 'jobs': [('{later}', 'default', None",
        f"jobs_settled worker True {{'jobs': [('{now}', 'default', 'finished', {{}})]}}",
        f"jobs_settled worker True {{'jobs': [('{later}', 'default', 'finished', {{}})]}}",
        "process_polled dispatcher True {'found': 1, 'wanted': 500}",
        "jobs_dispatched dispatcher True {'jobs': 1}",
        "process_beat worker True {}",
        "process_beat dispatcher True {}",
        "process_beat supervisor True {}",
    }

    def all_told() -> bool:
        found = events_of(project)
        return all(any(line.startswith(each) for line in found) for each in expected)

    wait_for(all_told, 20, "all signals")
    assert supervisor.stop() == 0
    assert not any(" False " in line for line in events_of(project))
    assert "failed" not in supervisor.errors()


def test_the_log_has_the_same_at_debug(make_project: MakeProject) -> None:
    extra = 'LOGGING["loggers"]["steady_queue"]["level"] = "DEBUG"\n'
    project = make_project(queue(processes=1, **SHORT_LEASE), extra=extra)
    supervisor = project.start()
    project.enqueue("work")
    project.wait_done(20)
    texts = ("Looked for jobs: 1 of up to ", "Looked for jobs: 0 of up to ", "Claimed 1 jobs",
             "Heartbeat")  # fmt: skip
    wait_for(lambda: all(text in supervisor.errors() for text in texts), 20, "the records")
    assert supervisor.stop() == 0


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What is made of events although nobody reads or listens."""
    made: list[Any] = []
    monkeypatch.setattr(events, "send", lambda *args, **kwargs: made.append(args))
    monkeypatch.setattr(events, "about", lambda *args, **kwargs: made.append(args))
    logger = logging.getLogger("steady_queue.process")
    level = logger.level
    logger.setLevel(logging.INFO)
    yield made
    logger.setLevel(level)


def test_nothing_is_made_of_an_event_that_nobody_hears_of(unheard: list[Any]) -> None:
    claim: Any = object()
    told = Events("worker", "worker-1", "default")

    def tell() -> None:
        told.polled(1, 5, 0.001)
        told.claimed([claim], 0.001)
        told.settled([(claim, claim)], 0.001)
        told.dispatched(1)
        told.unblocked(1)
        told.beat()

    tell()
    assert unheard == []
    of_claims = ("jobs_claimed", "jobs_settled")
    heard = [getattr(signals, name) for name in NAMES if name not in of_claims]

    def receiver(**payload: Any) -> None: ...

    for signal in heard:
        signal.connect(receiver)
    try:
        tell()
    finally:
        for signal in heard:
            signal.disconnect(receiver)
    assert [args[0] for args in unheard] == [
        signals.process_polled, signals.jobs_dispatched, signals.jobs_unblocked,
        signals.process_beat,
    ]  # fmt: skip
