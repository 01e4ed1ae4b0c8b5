"""Queues as a whole: how much waits, and whether workers take it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from steady_queue_core.dialects import portable
from steady_queue_core.dialects.portable import scan_position
from steady_queue_core.models import Job, Queue, ReadyExecution

from .everywhere import Jobs, on_every_database

NAMES = ("mail", "Mail", "maíl", "mail%", "ma_l", "m\\il")


@on_every_database
def test_a_queue_knows_its_size_and_how_long_its_first_job_has_waited(using: str) -> None:
    jobs = Jobs(using)
    jobs.ready(3, "mail")
    jobs.ready(1, "other")
    queue = Queue("mail", using)
    first = min(jobs.ids(ReadyExecution))
    past = portable.storable(jobs.dialect.current_time(jobs.connection) - timedelta(minutes=5))
    ReadyExecution.objects.using(using).filter(pk=first).update(created_at=past)

    assert queue.size == 3
    assert timedelta(minutes=5) <= queue.latency < timedelta(minutes=6)
    assert (Queue("empty", using).size, Queue("empty", using).latency) == (0, timedelta(0))


@on_every_database
def test_queues_are_those_with_jobs_and_those_that_are_paused(using: str) -> None:
    jobs = Jobs(using)
    for name in NAMES:
        jobs.ready(1, name)
    Queue("asleep", using).pause()
    assert [queue.name for queue in Queue.all(using)] == sorted([*NAMES, "asleep"])


@on_every_database
def test_a_paused_queue_gives_no_jobs_until_it_is_resumed(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A claim that goes on behind the dead rows of other tests notices one claim later.
    monkeypatch.setattr(scan_position, "ASK_INTERVAL", 3600.0)
    jobs = Jobs(using)
    jobs.forget_positions()
    for name in NAMES:
        jobs.ready(1, name)
    queue = Queue("mail", using)

    assert (queue.pause(), queue.pause()) == (True, False)
    assert queue.paused
    assert [each.paused for each in Queue.all(using)].count(True) == 1
    assert {claim.queue_name for claim in jobs.claim(100)} == {*NAMES} - {"mail"}
    assert jobs.claim(100, "mail") == jobs.claim(100, "m*") == []

    assert (queue.resume(), queue.resume()) == (True, False)
    assert not queue.paused
    assert [claim.queue_name for claim in jobs.claim(100)] == ["mail"]


@on_every_database
def test_a_queue_is_cleared_of_what_is_ready(using: str) -> None:
    jobs = Jobs(using)
    for name in NAMES:
        jobs.ready(2, name)
    scheduled = jobs.ready(1, "mail", delay=timedelta(hours=1))
    [running] = jobs.claim(1, "mail")

    assert Queue("mail", using).clear() == 1

    left = set(Job.objects.using(using).filter(queue_name="mail").values_list("pk", flat=True))
    assert left == {*scheduled, running.job_id}
    assert len(jobs.ids(ReadyExecution)) == 2 * (len(NAMES) - 1)
