"""What a project is told of its queues and of jobs that were discarded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from steady_queue_core import signals
from steady_queue_core.models import Job, Queue

from .everywhere import Jobs, on_every_database

NAMES = ("queue_paused", "queue_resumed", "task_discarded")


@pytest.fixture
def told() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """The signals that were sent, in order."""
    calls: list[tuple[str, dict[str, Any]]] = []
    receivers = {}
    for name in NAMES:

        def receiver(name: str = name, **payload: Any) -> None:
            del payload["signal"]
            calls.append((name, payload))

        receivers[name] = receiver
        getattr(signals, name).connect(receiver)
    yield calls
    for name, each in receivers.items():
        getattr(signals, name).disconnect(each)


@on_every_database
def test_a_pause_and_a_resumption_say_whether_they_changed_something(
    using: str, told: list[tuple[str, dict[str, Any]]]
) -> None:
    queue = Queue("mail", using)
    for act in (queue.pause, queue.pause, queue.resume, queue.resume):
        act()
    about = {"sender": signals.QueueLifecycle, "queue_name": "mail", "using": using}
    assert told == [
        ("queue_paused", {**about, "changed": True}),
        ("queue_paused", {**about, "changed": False}),
        ("queue_resumed", {**about, "changed": True}),
        ("queue_resumed", {**about, "changed": False}),
    ]


@on_every_database
def test_nothing_is_told_that_is_not_committed(
    using: str, told: list[tuple[str, dict[str, Any]]]
) -> None:
    jobs = Jobs(using)
    [job_id] = jobs.ready()
    with transaction.atomic(using=using):
        Queue("mail", using).pause()
        jobs.all.filter(pk=job_id).discard()
        transaction.set_rollback(True, using=using)
    assert told == []
    with transaction.atomic(using=using):
        jobs.all.filter(pk=job_id).discard()
        assert told == []
    assert told == [("task_discarded", {"sender": Job, "using": using, "task_ids": [str(job_id)]})]


@pytest.mark.django_db(transaction=True)
def test_a_receiver_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def breaks(**kwargs: Any) -> None:
        raise RuntimeError("told to fail")

    signals.queue_paused.connect(breaks)
    try:
        assert Queue("mail").pause()
    finally:
        signals.queue_paused.disconnect(breaks)
    assert "breaks" in caplog.text
    assert "told to fail" in caplog.text
