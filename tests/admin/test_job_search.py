"""Search in lists of jobs: by parts of names and errors, by arguments, and by time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.http import HttpRequest
from django.test.utils import CaptureQueriesContext

from steady_queue_core import arguments
from steady_queue_core.admin import JobAdmin
from steady_queue_core.dialects import portable
from steady_queue_core.listings import argument_search, job_listing
from steady_queue_core.listings.period import Period
from steady_queue_core.listings.states import FAILED
from steady_queue_core.models import FailedExecution, Job

from ..app.tasks import sign_up
from .places import HOUR, Scene, on_every_database
from .visitor import EVERYTHING, Page, Visitor

SECRET = "hunter2"
#: One that is over.
YEAR = 2025
Calls = Callable[..., int]


@pytest.fixture
def call(scene: Scene) -> Calls:
    """Have a ready job with arguments."""

    def made(*args: Any, task_path: str = sign_up.module_path, **kwargs: Any) -> int:
        text = arguments.encode_call(list(args), kwargs)
        [job_id] = scene.ready(1, task_path=task_path, arguments=text)
        return int(job_id)

    return made


def further(visitor: Visitor, page: Page) -> list[int]:
    """Return the ids of all pages of a list that looks further."""
    found = page.ids
    while 'rel="next"' in page.source:
        page = visitor.see(visitor.url("job") + page.link("(?:Look further|Next)"))
        found += page.ids
    return found


@on_every_database
def test_failed_jobs_are_found_by_a_part_of_their_error(using: str, scene: Scene) -> None:
    first, second, third = scene.failed(3)
    rows = FailedExecution.objects.using(using)
    rows.update(exception_class="builtins.ValueError", message="no such user")
    rows.filter(pk=first).update(exception_class="shop.errors.CardDeclined")
    rows.filter(pk=second).update(message="Card 100% used: ÄRGER")
    visitor = Visitor("view_job")
    assert visitor.list(state="failed", q="cardDec").ids == [first]
    assert visitor.list(state="failed", q="card").ids == [second, first]
    assert visitor.list(state="failed", q="100%").ids == [second]
    assert visitor.list(state="failed", q="ÄRGER").ids == [second]
    assert visitor.list(state="failed", q="no_such").ids == []
    assert visitor.list(state="failed", q="no such").ids == [third, first]
    assert visitor.list(q="card").ids == []


@on_every_database
def test_jobs_are_found_by_a_part_of_their_arguments(using: str, call: Calls) -> None:
    ada = call("Ada", email="ada@example.com", order={"id": 7, "note": "half\\full"})
    grace = call("Grace Ümit", email="grace@example.com")
    visitor = Visitor("view_job", "view_arguments")
    assert visitor.list(state="ready", arguments="ADA@example").ids == [ada]
    assert visitor.list(state="ready", arguments=" ümit ").ids == [grace]
    assert visitor.list(state="ready", arguments="@example.com").ids == [ada, grace]
    assert visitor.list(state="ready", arguments="email='grace").ids == [grace]
    assert visitor.list(state="ready", arguments="'id': 7").ids == [ada]
    assert visitor.list(state="ready", arguments="half\\full").ids == [ada]
    assert visitor.list(state="ready", arguments="half\\\\full").ids == [ada]
    assert visitor.list(state="ready", arguments="kwargs").ids == []
    assert visitor.list(arguments="@example.com", q="sign").ids == [grace, ada]
    assert visitor.list(arguments="@example.com", q="noop").ids == []
    assert visitor.list(arguments="@example.com", queue="mail").ids == []
    page = visitor.list(arguments="a\0b'\"<script>")
    assert page.ids == []
    assert "<script>" not in page.source.replace("<script>", "", 0).partition('id="content"')[2]


@on_every_database
def test_what_is_hidden_is_not_found(using: str, scene: Scene, call: Calls) -> None:
    call("Ada", SECRET, pwd=SECRET, deep=[{"api_key": SECRET}])
    call(SECRET, task_path="shop.tasks.gone")
    [damaged, large] = scene.ready(2, task_path=sign_up.module_path)
    jobs = Job.objects.using(using)
    jobs.filter(pk=damaged).update(arguments=f'{{"args":["{SECRET}"')
    text = f'{{"args":[],"kwargs":{{"text":"{SECRET}{"x" * 2**20}"}}}}'
    jobs.filter(pk=large).update(arguments=text)
    visitor = Visitor("view_job", "view_arguments")
    for part in (SECRET, SECRET[:3], SECRET[-4:]):
        page = visitor.list(state="ready", arguments=part)
        assert page.ids == []
        assert "0 jobs" in page


@pytest.mark.django_db
def test_who_may_not_see_arguments_may_not_search_them(scene: Scene, call: Calls) -> None:
    call("Ada")
    visitor = Visitor("view_job")
    assert "in arguments" not in visitor.list().source
    assert visitor.list(arguments="Ada").status == 403
    assert visitor.list(arguments="").status == 200
    assert visitor.act("discard", ..., arguments="Ada", state="ready").status == 403
    assert Job.objects.count() == 1
    page = Visitor("view_job", "view_arguments").list(arguments="Ada")
    assert 'name="arguments" value="Ada"' in page.source


@on_every_database
def test_only_arguments_that_the_user_may_see_are_searched(
    using: str, call: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, _ = call("Ada", n=1), call("Ada", n=2)

    def may_see(self: JobAdmin, request: HttpRequest, obj: Any = None) -> bool:
        return obj is None or obj.pk == seen

    monkeypatch.setattr(JobAdmin, "has_view_arguments_permission", may_see)
    assert Visitor("view_job").list(arguments="Ada").ids == [seen]


@on_every_database
def test_a_search_in_arguments_looks_at_a_bounded_number_of_jobs(
    using: str, scene: Scene, call: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_listing, "LOOKED_AT", 4)
    first = call("rare")
    for _ in range(9):
        call("usual")
    last = call("rare")
    visitor = Visitor("view_job", "view_arguments")
    page = visitor.list(state="ready", arguments="rare")
    assert page.ids == [first]
    assert "1+ jobs" in page
    assert further(visitor, page) == [first, last]


@on_every_database
def test_a_search_in_arguments_reads_a_bounded_number_of_characters(
    using: str, scene: Scene, call: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(argument_search, "MOST_CHARACTERS", 1_000)
    monkeypatch.setattr(argument_search, "MOST_READ", 3_000)
    expected = [call("rare", text="x" * length) for length in (10, 600, 600, 2_000, 2_000, 10)]
    call("rare", text="x" * 5_000)
    other = call("usual")
    visitor = Visitor("view_job", "view_arguments")
    page = visitor.list(state="ready", arguments="rare")
    assert page.ids == expected[:2]
    assert "Look further" in page.source
    assert further(visitor, page) == expected
    newest = visitor.list(arguments="x", queue="default")
    assert further(visitor, newest) == expected[::-1]
    page = visitor.act("discard", ..., state="ready", arguments="rare")
    page = visitor.act("discard", ..., state="ready", arguments="rare", confirmed="yes")
    assert page.status == 200
    allowed = Visitor(*EVERYTHING)
    question = allowed.act("discard", ..., state="ready", arguments="rare")
    assert "Discard 6 ready jobs?" in question
    url = f"{allowed.url('job')}?state=ready&arguments=rare"
    assert "Discarded 6 jobs." in allowed.post(url, question.answer()).messages
    assert Job.objects.using(using).filter(pk=other).exists()
    assert not Job.objects.using(using).filter(pk__in=expected).exists()


@on_every_database
def test_only_a_search_in_arguments_reads_them(using: str, call: Calls) -> None:
    call("Ada")
    visitor = Visitor("view_job", "view_arguments")
    for query, reads in (({"q": "sign"}, False), ({"arguments": "Ada"}, True)):
        with CaptureQueriesContext(connections[using]) as captured:
            assert visitor.list(**query).ids
        told = [each["sql"] for each in captured if "steady_queue_jobs" in each["sql"]]
        assert any("arguments" in sql for sql in told) is reads
        for column in ("errors", "return_value", "worker_ids"):
            assert not [sql for sql in told if column in sql]


@pytest.mark.django_db
def test_one_damaged_row_costs_few_queries(scene: Scene, call: Calls) -> None:
    for _ in range(100):
        call("Ada")
    damaged = call("Ada")
    with connections["default"].cursor() as cursor:
        sql = "UPDATE steady_queue_jobs SET enqueued_at = 'yesterday' WHERE id = %s"
        cursor.execute(sql, [damaged])
    visitor = Visitor("view_job", "view_arguments")
    with CaptureQueriesContext(connections["default"]) as captured:
        page = visitor.list(state="ready", arguments="Ada")
    assert len(page.ids) == 50
    assert len(captured) < 40


@on_every_database
def test_jobs_are_listed_by_the_time_of_their_end(using: str, scene: Scene) -> None:
    old, recent = scene.failed(2), scene.failed(1)
    ended, ended_now = scene.finished(2), scene.finished(1)
    present = portable.storable(scene.dialect.current_time(scene.connection))
    before = present - 5 * HOUR
    FailedExecution.objects.using(using).filter(pk__in=old).update(created_at=before)
    Job.objects.using(using).filter(pk__in=ended).update(finished_at=before)
    visitor = Visitor("view_job")
    assert visitor.list(state="failed", since="1h").ids == recent
    assert visitor.list(state="failed", since="24h").ids == [*recent, *old[::-1]]
    assert visitor.list(state="failed", until="2h").ids == old[::-1]
    assert visitor.list(state="failed", since="6h", until="4h").ids == old[::-1]
    assert visitor.list(state="finished", since="1h").ids == ended_now
    assert visitor.list(state="finished", until="1h").ids == ended[::-1]
    moment = portable.aware(before).isoformat().replace("+00:00", "Z")
    assert visitor.list(state="failed", since=moment).ids == [*recent, *old[::-1]]
    assert visitor.list(state="failed", until=moment).ids == []
    Job.objects.using(using).filter(pk__in=old).update(enqueued_at=before)
    assert visitor.list(until="1h").ids == old[::-1]
    page = visitor.list(state="failed", since="1h")
    assert "time of failure" in page
    assert "The last day" in page


@on_every_database
def test_times_are_in_the_zone_of_the_project(using: str, scene: Scene, settings: Any) -> None:
    [job] = scene.failed(1)
    there = portable.storable(datetime(YEAR, 7, 1, 12, tzinfo=UTC))
    FailedExecution.objects.using(using).filter(pk=job).update(created_at=there)
    settings.TIME_ZONE = "Pacific/Auckland"  # 12 hours ahead of UTC in July.
    visitor = Visitor("view_job")
    midnight = f"{YEAR}-07-02T00:00"
    assert visitor.list(state="failed", since=f"{YEAR}-07-01T23:59", until="1s").ids == [job]
    assert visitor.list(state="failed", until=midnight).ids == []


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["since", "until"])
def test_a_state_without_a_time_heeds_none(scene: Scene, name: str) -> None:
    """An action on all jobs of a list must not find more than was asked for."""
    scene.ready(1)
    visitor = Visitor(*EVERYTHING)
    page = visitor.list(state="ready", **{name: "1h"})
    assert page.response.status_code == 302
    page = visitor.list(**{name: "0s"})
    assert f"{name}=0s" not in page.link("Ready")
    assert f"{name}=0s" in page.link("Failed")


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize(
    "text", ["yesterday", "-1h", "9" * 30, "2026-13-01", "9999-12-31T23:59", "0001-01-01", "\0"]
)
def test_a_time_that_makes_no_sense_leads_to_a_list(scene: Scene, name: str, text: str) -> None:
    scene.failed(1)
    visitor = Visitor("view_job")
    response = visitor.client.get(visitor.url("job"), {"state": "failed", name: text}, follow=True)
    assert response.status_code == 200
    assert b"Database error" not in response.content


@on_every_database
def test_a_search_makes_no_more_than_a_dozen_queries(using: str, scene: Scene, call: Calls) -> None:
    for _ in range(60):
        call("Ada")
    scene.failed(3), scene.finished(3), scene.claimed(2, queue_name="mail")
    visitor = Visitor("view_job", "view_arguments")
    for state in ("", "ready", "running", "failed", "finished"):
        query = {"state": state, "q": "a", "queue": "default", "arguments": "a"}
        if state in ("", "failed", "finished"):
            query["since"] = "1h"
        page = visitor.list(**query)
        urls = [{}, {"p": page.link("Next").partition("p=")[2]}] if "Next" in page.source else [{}]
        for also in urls:
            with (
                CaptureQueriesContext(connections["default"]) as ours,
                CaptureQueriesContext(connections[using]) as theirs,
            ):
                visitor.list(**query, **also)
            made = len(ours) + (len(theirs) if using != "default" else 0)
            assert made <= 12, (state, also, [each["sql"][:90] for each in ours.captured_queries])


def test_the_present_time_is_asked_only_if_it_is_needed() -> None:
    asked: list[int] = []

    def now() -> datetime:
        asked.append(1)
        return datetime(2026, 1, 1, tzinfo=UTC)

    period = Period(None, None, now)
    assert not period.within(FAILED)
    assert not asked
    assert Period(timedelta(1), timedelta(0), now).within(FAILED)
    assert asked == [1]
