"""Metrics of a database: what Prometheus' own parser reads of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families

from steady_queue_core import metrics
from steady_queue_core.dialects import portable
from steady_queue_core.dialects.registry import dialect_for
from steady_queue_core.errors import PrometheusMissing
from steady_queue_core.metrics import metrics_text, views
from steady_queue_core.models import (
    Process,
    RecurringTask,
    ScheduledExecution,
    Statistic,
)
from steady_queue_core.statistics.storage import store
from steady_queue_core.statistics.tally import ALL_TIME, Tally

from .. import documents
from .everywhere import Jobs, on_every_database

BACKEND = "steady_queue_core.backend.SteadyQueueBackend"
TOKEN = "0123456789abcdef"


def only(settings: Any, using: str) -> None:
    """Let the project have one backend, on this database."""
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": {"database": using}}}


def scraped(accept: str | None = None) -> dict[tuple[str, str], float]:
    """Return the values by name and the labels beside the backend."""
    text, _ = metrics_text(accept)
    found = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            labels = {**sample.labels}
            assert labels.pop("backend") == "default"
            found[sample.name, ",".join(labels[name] for name in sorted(labels))] = sample.value
    return found


def add_totals(using: str, **tallies: Tally) -> None:
    rows = [
        Statistic(
            span=ALL_TIME, minute=0, stored_minute=1, queue_name="mail", task_path=task,
            writer=writer, **tally.values(),
        )
        for writer, (task, tally) in enumerate(tallies.items())
    ]  # fmt: skip
    store(connections[using], dialect_for(using), rows)


@on_every_database
def test_gauges_and_counters_are_those_of_the_database(using: str, settings: Any) -> None:
    only(settings, using)
    jobs = Jobs(using)
    jobs.failed(1)
    jobs.claimed(2, queue_name="other")
    jobs.ready(3, queue_name="mail")
    Process.objects.using(using).update(metadata='{"queues": ["*"], "threads": 4}')
    first, second = Tally(finished=3, run_ms=1500), Tally(finished=4, lost=1)
    for milliseconds in (1, 500, 10**7):
        first.note_run(milliseconds)
    add_totals(using, send=first, fetch=second)

    found = scraped()

    assert found["steady_queue_up", ""] == 1
    assert found["steady_queue_tasks", "mail,ready"] == 3
    assert found["steady_queue_tasks", "other,running"] == 2
    assert found["steady_queue_tasks", "default,failed"] == 1
    assert 0 <= found["steady_queue_oldest_wait_seconds", "mail"] < 60
    assert found["steady_queue_queue_workers", "mail"] == 1
    assert found["steady_queue_queue_paused", "mail"] == 0
    assert found["steady_queue_processes", "worker,live"] == 1
    assert found["steady_queue_worker_threads", "total"] == 4
    assert found["steady_queue_worker_threads", "busy"] == 2
    assert found["steady_queue_tasks_finished_total", "mail,send"] == 3
    assert found["steady_queue_tasks_lost_total", "mail,fetch"] == 1
    name = "steady_queue_task_duration_seconds"
    assert found[f"{name}_bucket", "0.001,mail"] == 1
    assert found[f"{name}_bucket", "0.512,mail"] == 2
    assert found[f"{name}_bucket", "524.288,mail"] == 2
    assert found[f"{name}_bucket", "+Inf,mail"] == 3
    assert found[f"{name}_count", "mail"] == 3
    assert found[f"{name}_sum", "mail"] == pytest.approx(1.5 + 0.501 + 10**4)
    assert found["steady_queue_dispatch_lag_seconds", ""] == 0


@on_every_database
def test_counters_of_a_queue_do_not_fall_when_pairs_are_too_many(
    using: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from steady_queue_core.metrics import scrape

    only(settings, using)
    monkeypatch.setattr(scrape, "MOST_SERIES", 2)
    add_totals(using, send=Tally(finished=3), tell=Tally(finished=4))
    before = scrape.Scrape.of(using).totals_by_queue["mail"]
    add_totals(using, fetch=Tally(finished=1))
    found = scrape.Scrape.of(using)
    assert found.totals_by_queue["mail"].finished == before.finished + 1
    assert sorted(task for _, task in found.totals) == ["", "fetch", "send"]


@on_every_database
def test_what_is_overdue_is_late(using: str, settings: Any) -> None:
    only(settings, using)
    jobs = Jobs(using)
    present = Jobs.present(using)
    jobs.ready(1, run_at=present + timedelta(hours=1))
    ScheduledExecution.objects.using(using).update(
        due_at=portable.storable(present - timedelta(minutes=2))
    )
    past = portable.storable(present - timedelta(hours=2))
    RecurringTask.objects.using(using).create(
        key="hourly", task_path="shop.tasks.report", schedule="0 * * * *", active_since=past,
        created_at=past, updated_at=past, queue_name="default", backend_name="default",
    )  # fmt: skip
    found = scraped()
    assert 120 <= found["steady_queue_dispatch_lag_seconds", ""] < 300
    assert 3600 <= found["steady_queue_scheduler_lag_seconds", ""] <= 7260
    name = "steady_queue_recurring_next_run_timestamp_seconds"
    assert found[name, "hourly"] > present.timestamp()


@on_every_database
def test_a_scrape_takes_a_dozen_statements_however_many_queues(using: str, settings: Any) -> None:
    only(settings, using)
    jobs = Jobs(using)
    for number in range(20):
        jobs.ready(2, queue_name=f"queue{number}")
    with CaptureQueriesContext(connections[using]) as captured:
        metrics_text()
    statements = [query["sql"] for query in captured if "steady_queue" in query["sql"]]
    assert len(statements) <= 25


@pytest.mark.django_db
def test_openmetrics_are_sent_to_those_who_accept_them(settings: Any) -> None:
    only(settings, "default")
    text, content_type = metrics_text("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")
    _, content_type = metrics_text("*/*")
    assert content_type.startswith("text/plain")


@pytest.mark.django_db
def test_names_of_queues_may_be_anything(settings: Any) -> None:
    only(settings, "default")
    nasty = 'a"b\\n\n{c}'
    Jobs("default").ready(1, queue_name=nasty)
    assert scraped()["steady_queue_tasks", f"{nasty},ready"] == 1


@pytest.mark.django_db
def test_a_database_that_is_not_ready_is_not_up(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import OperationalError

    from steady_queue_core.metrics import scrape

    only(settings, "default")

    def away(using: str) -> Any:
        raise OperationalError("gone")

    monkeypatch.setattr(scrape, "listed_processes", away)
    assert scraped() == {("steady_queue_up", ""): 0}


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(metrics, "import_module", missing)
    with pytest.raises(PrometheusMissing, match=r"steady-queue-core\[prometheus\]"):
        metrics_text()


@pytest.mark.django_db
def test_the_page_lists_every_metric(settings: Any) -> None:
    only(settings, "default")
    text, _ = metrics_text()
    told = {
        (f"{family.name}_total" if family.type == "counter" else family.name, family.type)
        for family in text_string_to_metric_families(text.decode())
    }
    page = documents.WORKSPACE / "docs" / "metrics.md"
    table = documents.section(page, "Which there are")
    listed = {
        (line.split("`")[1], line.split("|")[2].strip().replace("info", "gauge"))
        for line in table.splitlines()
        if line.startswith("| `steady")
    }
    assert told == listed


@pytest.mark.django_db
@pytest.mark.urls("tests.metrics_urls")
def test_the_view_is_for_tokens_and_staff_who_may_see_the_overview(
    settings: Any, django_user_model: Any
) -> None:
    only(settings, "default")
    client = Client()
    refused = client.get("/metrics/")
    assert refused.status_code == 401
    assert refused["WWW-Authenticate"] == 'Bearer realm="metrics"'
    # Without a token in the settings, none will do.
    assert client.get("/metrics/", headers={"authorization": "Bearer "}).status_code == 403
    settings.STEADY_QUEUE = {"metrics_token": TOKEN}
    assert client.get("/metrics/", headers={"authorization": "Bearer x"}).status_code == 403
    assert client.get("/metrics/", headers={"authorization": TOKEN}).status_code == 403
    got = client.get("/metrics/", headers={"authorization": f"Bearer {TOKEN}"})
    assert got.status_code == 200
    assert b"steady_queue_up" in got.content
    assert client.post("/metrics/", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 405
    user = django_user_model.objects.create_user("somebody", password="secret")
    client.force_login(user)
    assert client.get("/metrics/").status_code == 403
    user.is_staff = True
    user.save()
    assert client.get("/metrics/").status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="view_overview"))
    assert client.get("/metrics/").status_code == 200
    user.is_active = False
    user.save()
    client.force_login(user)
    assert client.get("/metrics/").status_code != 200


@pytest.mark.django_db
@pytest.mark.urls("tests.metrics_urls")
def test_the_view_knows_no_case_of_the_scheme_and_no_transaction(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(settings, "default")
    settings.STEADY_QUEUE = {"metrics_token": TOKEN}
    headers = {"authorization": f"bearer {TOKEN}"}
    client = Client()
    assert client.get("/metrics/", headers=headers).status_code == 200
    inside: list[bool] = []

    def noting(accept: str | None) -> tuple[bytes, str]:
        inside.append(len(connections["default"].savepoint_ids) > before)
        raise metrics.PrometheusMissing(metrics.MISSING)

    before = len(connections["default"].savepoint_ids)
    monkeypatch.setattr(views, "metrics_text", noting)
    monkeypatch.setitem(connections["default"].settings_dict, "ATOMIC_REQUESTS", True)
    missing = client.get("/metrics/", headers=headers)
    assert (missing.status_code, inside) == (501, [False])
    assert b"steady-queue-core[prometheus]" in missing.content


@pytest.mark.django_db
def test_names_control_no_terminal_and_no_series_is_there_twice(settings: Any) -> None:
    only(settings, "default")
    jobs = Jobs("default")
    jobs.ready(1, queue_name="a\x1b[31m\u202e")
    jobs.ready(2, queue_name="a\\x1b[31m\\u202e")
    text, _ = metrics_text()
    assert b"\x1b" not in text
    assert "\u202e" not in text.decode()
    [family] = [
        each
        for each in text_string_to_metric_families(text.decode())
        if each.name == "steady_queue_tasks"
    ]
    ready = [each for each in family.samples if each.labels["state"] == "ready"]
    assert [(each.labels["queue"], each.value) for each in ready] == [("a\\x1b[31m\\u202e", 3)]
