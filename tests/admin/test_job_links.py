"""From the page of a job to its task, queue, process, keys, and the jobs that have these."""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.http import HttpRequest

from steady_queue_core import Unique, task
from steady_queue_core.admin import JobAdmin
from steady_queue_core.models import FailedExecution, Job, Process, Semaphore
from steady_queue_core.models.semaphore import Permit

from .places import Scene, on_every_database
from .visitor import EVERYTHING, Visitor


@task(unique=Unique(key=lambda: "the-one"))
def only_one() -> None:
    """Have a unique key."""


def leads(visitor: Visitor, job_id: int, words: str) -> str:
    """Return the address to which words on the page of a job lead; empty: nowhere."""
    source = visitor.see(visitor.url("job", "change", job_id)).source
    before, found, _ = source.partition(f">{html.escape(words)}</a>")
    return html.unescape(before.rpartition('href="')[2].rstrip('"')) if found else ""


def limited(scene: Scene, key: str, holders: int) -> tuple[int, list[int]]:
    """Return a job that is blocked, and those that have the permits of its key."""
    [blocked] = scene.blocked(1, key=key)
    held = scene.ready(holders)
    jobs = Job.objects.using(scene.using).filter(pk__in=[blocked, *held])
    jobs.update(concurrency_key=key, concurrency_limit=holders)
    Semaphore.objects.using(scene.using).create(key=key, value=0, limit=holders)
    permits = [Permit(job_id=each, key=key) for each in held]
    Permit.objects.using(scene.using).bulk_create(permits)
    return blocked, held


@on_every_database
def test_a_job_leads_to_its_task_queue_and_process(using: str, scene: Scene) -> None:
    [claim] = scene.claimed(1, queue_name="mail/a b?")
    visitor = Visitor(*EVERYTHING)
    tasks = leads(visitor, claim.job_id, "conformance.tasks.work")
    assert visitor.see(tasks).ids == [claim.job_id]
    queue = visitor.see(leads(visitor, claim.job_id, "mail/a b?"))
    assert (queue.status, "mail/a b?" in queue) == (200, True)
    process = visitor.see(leads(visitor, claim.job_id, "worker-1 (pid 1 on here)"))
    assert f"#{claim.job_id}" in process
    alone = Visitor("view_job")
    assert leads(alone, claim.job_id, "mail/a b?") == ""
    assert leads(alone, claim.job_id, "worker-1 (pid 1 on here)") == ""
    page = alone.see(alone.url("job", "change", claim.job_id))
    assert "mail/a b?" in page
    assert "worker-1 (pid 1 on here)" in page


@on_every_database
def test_a_blocked_job_names_the_holders_of_its_permits(using: str, scene: Scene) -> None:
    blocked, held = limited(scene, "account:<7>/x", 2)
    visitor = Visitor(*EVERYTHING)
    page = visitor.see(visitor.url("job", "change", blocked))
    assert f"Permits held by #{held[0]} , #{held[1]}" in page
    for each in held:
        assert f"Job #{each}" in visitor.see(leads(visitor, blocked, f"#{each}"))
    semaphore = visitor.see(leads(visitor, blocked, "account:<7>/x"))
    assert "In use 2 of 2" in semaphore
    assert "Permits held by" not in visitor.see(visitor.url("job", "change", held[0]))
    many, held = limited(scene, "account:8", 5)
    page = visitor.see(visitor.url("job", "change", many))
    assert f"#{held[2]} and others" in page
    assert f"#{held[3]}" not in page


@on_every_database
def test_holders_that_the_user_may_not_see_are_not_named(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked, [hidden, seen] = limited(scene, "account:7", 2)
    rows = JobAdmin.get_queryset

    def without(self: JobAdmin, request: HttpRequest) -> Any:
        return rows(self, request).exclude(pk=hidden)

    monkeypatch.setattr(JobAdmin, "get_queryset", without)
    visitor = Visitor(*EVERYTHING)
    page = visitor.see(visitor.url("job", "change", blocked))
    assert f"Permits held by #{seen}" in page
    assert f"#{hidden}" not in page


@on_every_database
def test_a_unique_key_leads_to_the_job_that_has_it(
    using: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = int(only_one.enqueue().id)
    [other] = scene.ready(1)
    jobs = Job.objects.using(using)
    jobs.filter(pk=other).update(metadata=jobs.get(pk=owner).metadata)
    visitor = Visitor(*EVERYTHING)
    assert f"Job #{owner}" in visitor.see(leads(visitor, other, f"#{owner}"))
    rows = JobAdmin.get_queryset
    monkeypatch.setattr(
        JobAdmin, "get_queryset", lambda self, request: rows(self, request).exclude(pk=owner)
    )
    assert leads(visitor, other, f"#{owner}") == ""
    assert f"(of job #{owner})" in visitor.see(visitor.url("job", "change", other))


@on_every_database
def test_lists_lead_to_processes_keys_and_error_groups(using: str, scene: Scene) -> None:
    failed, _ = scene.failed(2), scene.failed(1)
    [claim], (blocked, _) = scene.claimed(1), limited(scene, "account:7", 1)
    rows = FailedExecution.objects.using(using).filter(pk__in=failed)
    rows.update(exception_class="app.Late", message="too late", fingerprint="ab" * 8)
    visitor = Visitor(*EVERYTHING)

    def linked(words: str, **query: str) -> str:
        before = visitor.list(**query).source.partition(f">{words}</span></a>")[0]
        return html.unescape(before.rpartition('<a href="')[2].partition('"')[0])

    assert f"#{claim.job_id}" in visitor.see(linked("worker-1", state="running"))
    assert "In use" in visitor.see(linked("account:7", state="blocked"))
    assert visitor.see(linked("Late: too late", state="failed")).ids == failed[::-1]
    alone = Visitor("view_job")
    assert ">worker-1</span></a>" not in alone.list(state="running").source
    assert ">worker-1</span>" in alone.list(state="running").source
    assert ">account:7</span></a>" not in alone.list(state="blocked").source
    Process.objects.using(using).all().delete()
    assert "process/" not in visitor.list(state="running").source.partition('id="result_list"')[2]
    assert blocked in visitor.list(state="blocked").ids


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["", "a\nb", "%2F", "..", "\x1b", "x" * 255])
def test_any_name_of_a_queue_is_shown(scene: Scene, name: str) -> None:
    [job] = scene.ready(1)
    Job.objects.filter(pk=job).update(queue_name=name, concurrency_key=name, task_path=name)
    visitor = Visitor(*EVERYTHING)
    assert visitor.see(visitor.url("job", "change", job)).status == 200
