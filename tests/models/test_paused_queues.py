"""A claim from all queues beside paused ones: where it goes on to read, and what that costs."""

from __future__ import annotations

from math import inf, nextafter
from typing import Any
from unittest import mock

import pytest

from steady_queue_core.dialects.portable import Bookmarks, Span, scan_position
from steady_queue_core.models import Queue, ReadyExecution

from .everywhere import Jobs, on_every_database


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the whole index was read, it is not read again for a while."""
    monkeypatch.setattr(scan_position, "SHARE", 1e-9)
    monkeypatch.setattr(scan_position, "LONGEST_PAUSE", 600.0)


def of_worker(jobs: Jobs) -> Bookmarks:
    """Return the bookmarks that the claims of ``jobs`` leave."""
    for claimer in jobs.connection.__dict__.get("steady_queue_claimers", {}).values():
        found: Bookmarks = claimer._bookmarks
        return found
    return Bookmarks.of(jobs.connection)


@pytest.mark.usefixtures("patient")
@on_every_database
def test_claims_go_on_behind_the_jobs_of_a_paused_queue(using: str) -> None:
    jobs = Jobs(using)
    jobs.forget_positions()
    paused = jobs.ready(scan_position.MANY_PAUSED, "paused", rank=-5)
    between = jobs.ready(scan_position.MANY_PAUSED, "paused")
    live = jobs.ready(4, "live")
    Queue("paused", using).pause()
    for job_id in live[:3]:
        assert [claim.job_id for claim in jobs.claim(1)] == [job_id]

    spans = of_worker(jobs).spans(whole=False)
    assert Span(None, -5, nextafter(paused[-1], inf), 0) in spans
    assert Span(None, 0, live[2], scan_position.HIGHEST) in spans
    assert live[2] > between[-1]

    [urgent] = jobs.ready(1, "live", rank=-5)
    assert [claim.job_id for claim in jobs.claim(5)] == [urgent, live[3]]


@pytest.mark.usefixtures("patient")
@on_every_database
def test_a_job_that_comes_back_before_the_bookmark_is_found_by_a_look_at_all(using: str) -> None:
    jobs = Jobs(using)
    jobs.forget_positions()
    [early] = jobs.ready(1, "live", rank=-5)
    row = ReadyExecution.objects.using(using).get()
    ReadyExecution.objects.using(using).filter(pk=early)._raw_delete(using)
    jobs.ready(scan_position.MANY_PAUSED, "paused", rank=-5)
    live = jobs.ready(4, "live")
    Queue("paused", using).pause()
    for job_id in live[:3]:
        assert [claim.job_id for claim in jobs.claim(1)] == [job_id]
    row.save(using=using, force_insert=True)

    assert [claim.job_id for claim in jobs.claim(1)] == [live[3]]
    of_worker(jobs).look_at_all()
    assert [claim.job_id for claim in jobs.claim(1)] == [early]


@pytest.mark.usefixtures("patient")
@on_every_database
def test_the_jobs_of_a_queue_that_is_resumed_are_claimed_again(using: str) -> None:
    jobs = Jobs(using)
    jobs.forget_positions()
    paused = jobs.ready(scan_position.MANY_PAUSED, "paused", rank=-5)
    for other in ("other", "third"):
        Queue(other, using).pause()
    Queue("paused", using).pause()
    for _ in range(4):
        assert jobs.claim(5) == []

    Queue("paused", using).resume()
    claims = [*jobs.claim(5), *jobs.claim(5)]
    assert [claim.job_id for claim in claims][:5] == paused[:5]


@pytest.mark.usefixtures("patient")
@on_every_database
def test_few_jobs_of_paused_queues_are_read_each_time(using: str) -> None:
    jobs = Jobs(using)
    jobs.forget_positions()
    [early] = jobs.ready(1, "live", rank=-5)
    row = ReadyExecution.objects.using(using).get()
    ReadyExecution.objects.using(using).filter(pk=early)._raw_delete(using)
    jobs.ready(scan_position.MANY_PAUSED - 1, "paused", rank=-5)
    live = jobs.ready(4, "live")
    Queue("paused", using).pause()
    for job_id in live[:3]:
        assert [claim.job_id for claim in jobs.claim(1)] == [job_id]
    row.save(using=using, force_insert=True)
    assert [claim.job_id for claim in jobs.claim(1)] == [early]


def test_looks_at_the_whole_index_take_a_small_share_of_the_time() -> None:
    found = Bookmarks()
    clock: dict[str, Any] = {"return_value": 1000.0}
    with mock.patch.object(scan_position.time, "monotonic", **clock) as now:
        found.answer(scan_position.MANY_PAUSED)
        assert found.looks_at_all
        found.looked_at_all(0.01)
        assert not found.looks_at_all
        now.return_value += 0.01 / scan_position.SHARE
        assert found.looks_at_all
        found.looked_at_all(100.0)
        now.return_value += scan_position.LONGEST_PAUSE
        assert found.looks_at_all
