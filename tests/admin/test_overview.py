"""The overview: one page about the whole queue."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.contrib.admin import AdminSite
from django.contrib.admin import site as default_site
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.urls import path

from steady_queue_core.admin import (
    JobAdmin,
    ProcessAdmin,
    QueuesAdmin,
    RecurringTaskAdmin,
    error_groups,
    overview_tables,
    register,
)
from steady_queue_core.admin import overview as admin_overview
from steady_queue_core.doctor import Finding
from steady_queue_core.models import (
    Job,
    Pause,
    Process,
    Queue,
    RecurringExecution,
    RecurringTask,
    Sample,
    Statistic,
)
from steady_queue_core.overview import closer
from steady_queue_core.statistics.tally import HOUR, RECENT_HOUR

from ..doctor.ward import HOUR as AN_HOUR
from ..overview.planting import TASK, Garden, plant
from ..servers.kinds import KINDS
from .places import on_every_database, tasks_in
from .test_error_groups import buttons, fail
from .test_hostile import NASTY, PATH
from .visitor import EVERYTHING, Page, Visitor

#: Queries of the page, and of the part that refreshes, by a user with permissions of their own. A
#: superuser needs two less.
MOST, MOST_OF_FRAGMENT = 12, 10
#: Bytes of a page with as much as is shown at most.
LARGEST = 36_000
#: And of one with a few queues and tasks.
USUAL = 25_000
BARE = {"view_overview"}


@pytest.fixture
def garden(
    request: pytest.FixtureRequest, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Garden:
    """A queue that is well, in the database ``using``, or the default one."""
    return plant(request, settings, monkeypatch)


def grow(garden: Garden, queues: int = 3, tasks: int = 3) -> None:
    """Have a queue that is busy, and has some problems."""
    present = garden.present(garden.using)
    garden.failed(3), garden.claimed(3), garden.ready(3, delay=AN_HOUR)
    for number in range(queues):
        name = f"queue{number}"
        garden.ready(2, name)
        garden.sample(10, name, 5)
        for ago in range(0, 60, 3):
            garden.count(
                ago, name, f"shop.tasks.t{number % tasks}", finished=9 + ago, failed=ago % 2
            )
    for ago in range(60):
        garden.sample(ago, ready=ago, wait=100 * ago)
    for span, age in ((RECENT_HOUR, 300), (HOUR, 5_000)):
        garden.count(age, span=span, finished=1_000, failed=7)
    Queue("queue1", garden.using).pause()
    garden.rows(RecurringTask).create(
        key="daily", task_path="tests.app.tasks.noop", schedule="0 6 * * *", timezone="UTC",
        arguments='{"args":[],"kwargs":{}}', backend_name="default", queue_name="default",
        created_at=present, updated_at=present,
    )  # fmt: skip
    [job] = garden.finished(1, rank=-9)
    garden.rows(RecurringExecution).create(
        task_key="daily", run_at=present, job_id=job, created_at=present
    )


class Markup(HTMLParser):
    """What a page consists of."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in_script = tag == "script"

    def handle_data(self, data: str) -> None:
        if self._in_script and data.strip():
            self.scripts.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def values(self, attribute: str) -> list[str]:
        found = [attributes.get(attribute) for _, attributes in self.elements]
        return [each for each in found if each is not None]


def see(visitor: Visitor, **query: Any) -> Page:
    return visitor.list("overview", **query)


def queries_of(using: str, visitor: Visitor, **query: Any) -> int:
    with (
        CaptureQueriesContext(connections["default"]) as ours,
        CaptureQueriesContext(connections[using]) as theirs,
    ):
        assert see(visitor, **query).status == 200
    return len(ours) + (len(theirs) if using != "default" else 0)


@on_every_database
def test_the_page_tells_all_by_few_queries(using: str, garden: Garden) -> None:
    visitor, chief = Visitor(*EVERYTHING), Visitor()
    User.objects.filter(pk=chief.user.pk).update(is_superuser=True)
    for full in (False, True):
        if full:
            grow(garden)
        for window in ("1h", "24h", "7d"):
            assert queries_of(using, visitor, window=window) <= MOST
            assert queries_of(using, visitor, window=window, fragment="1") <= MOST_OF_FRAGMENT
            assert queries_of(using, chief, window=window) <= MOST - 2
            assert queries_of(using, chief, window=window, fragment="1") <= MOST_OF_FRAGMENT - 2
    page = see(visitor)
    assert 'Problems (1) 2 jobs wait in queue "queue1", which is paused, for' in page.text
    assert "Ready 6 Scheduled 3 Blocked 0 Running 3 Failed now 3 Processes 4 live" in page
    assert re.search(r"queue0 open 2 \d+ m?s 0 0 10 [\d.]+ [\d.]+ [\d,]+ ended in", page.text)
    assert re.search(r"queue1 paused for \d+ m?s 2 ", page.text)
    assert re.search(r"t0 \d+ \d\.\d% 0% 100 ms ", page.text)
    assert "worker-1 (pid 17 on web-1)" in page
    assert re.search(r"daily noop \d+ (d|h|min|s|ms)\b", page.text)


@on_every_database
def test_without_processes_it_asks_no_more(using: str, garden: Garden) -> None:
    chief = Visitor()
    User.objects.filter(pk=chief.user.pk).update(is_superuser=True)
    grow(garden)
    Process.objects.using(using).delete()
    assert queries_of(using, chief) <= MOST - 2
    assert queries_of(using, chief, fragment="1") <= MOST_OF_FRAGMENT - 2
    # What it shows of the time is right, too.
    assert re.search(r"which is paused, for \d+ m?s", see(chief).text)


@pytest.mark.django_db(transaction=True)
def test_the_page_needs_neither_scripts_nor_styles_of_its_own(garden: Garden) -> None:
    grow(garden)
    for query in ({}, {"window": "7d"}, {"queue": "queue1"}):
        markup = Markup(see(Visitor(*EVERYTHING), **query).source)
        assert markup.values("style") == []
        assert "style" not in [tag for tag, _ in markup.elements]
        names = {name for _, attributes in markup.elements for name in attributes}
        assert not [name for name in names if name.startswith("on")]
        assert markup.scripts == []
        ids = markup.values("id")
        assert len(ids) == len(set(ids))
        for each in (*markup.values("aria-labelledby"), *markup.values("form")):
            assert each in ids, each
        tags = [tag for tag, _ in markup.elements]
        assert tags.count("details") == 3
        charts = [each for tag, each in markup.elements if each.get("class") == "sq-chart"]
        assert len(charts) == 3


@pytest.mark.django_db(transaction=True)
def test_its_breadcrumbs_are_those_of_this_django(garden: Garden) -> None:
    visitor = Visitor(*EVERYTHING)
    pattern = re.compile(r'<(\w+) class="breadcrumbs">')
    assert pattern.findall(see(visitor).source) == pattern.findall(visitor.list().source) != []


@pytest.mark.django_db(transaction=True)
def test_a_page_is_not_large(garden: Garden, monkeypatch: pytest.MonkeyPatch) -> None:
    # The tasks that other modules of the suite declare could be chosen as well.
    monkeypatch.setattr(admin_overview, "registered_tasks", list)
    monkeypatch.setattr(admin_overview, "queues_of_tasks", set)
    grow(garden)
    assert len(see(Visitor(*EVERYTHING)).source) < USUAL
    Queue("queue1", garden.using).resume()
    Statistic.objects.all().delete(), Sample.objects.all().delete()
    RecurringTask.objects.all().delete(), RecurringExecution.objects.all().delete()
    grow(garden, queues=60, tasks=40)
    for window in ("1h", "24h", "7d"):
        page = see(Visitor(*EVERYTHING), window=window)
        assert len(page.source) < LARGEST
    assert "50 more: all queues" in page
    assert "29 more: choose one above." in page


@pytest.mark.django_db(transaction=True)
def test_what_has_not_changed_is_not_sent_again(garden: Garden) -> None:
    visitor = Visitor(*EVERYTHING)
    first = see(visitor, fragment="1")
    assert first.status == 200
    assert "<html" not in first.source
    assert "csrfmiddlewaretoken" not in first.source
    etag = first.response.headers["ETag"]

    def again() -> Any:
        url = f"{visitor.url('overview')}?fragment=1"
        return visitor.client.get(url, headers={"If-None-Match": etag})

    assert (again().status_code, again().content) == (304, b"")
    garden.failed(1)
    assert again().status_code == 200


@pytest.mark.django_db(transaction=True)
def test_what_refreshes_is_what_the_page_shows(garden: Garden) -> None:
    grow(garden)
    visitor = Visitor(*EVERYTHING)
    page, fragment = see(visitor, task=TASK), see(visitor, task=TASK, fragment="1")
    parts = Markup(fragment.source).values("data-part")
    assert parts == Markup(page.source).values("data-part")
    assert parts == [
        "problems", "numbers", "chart-ended", "chart-times", "chart-lengths", "queues", "tasks",
        "errors", "longest",
    ]  # fmt: skip
    [address] = Markup(page.source).values("data-refresh")
    assert "fragment=1" in address
    assert "task=shop.tasks.send" in address


@pytest.mark.django_db(transaction=True)
def test_links_lead_to_pages(garden: Garden) -> None:
    grow(garden)
    garden.silence("dispatcher")
    visitor = Visitor(*EVERYTHING)
    page = see(visitor)
    body = page.source.partition('<div id="content-main"')[2]
    urls = {each for each in Markup(body).values("href") if each.startswith("/")}
    assert len(urls) > 15
    for url in urls:
        assert visitor.see(url).status == 200, url


@pytest.mark.django_db(transaction=True)
def test_lost_attempts_lead_to_the_processes_that_have_ended(garden: Garden) -> None:
    garden.count(30, lost=2, finished=100)
    rights = ("view_overview", "view_process")
    assert (
        'href="/admin/steady_queue/processend/"'
        in see(Visitor(*rights, "view_processend")).source.partition('id="content-main"')[2]
    )
    page = see(Visitor(*rights)).source.partition('id="content-main"')[2]
    assert 'href="/admin/steady_queue/process/">Processes' in page


@pytest.mark.django_db(transaction=True)
def test_who_may_only_look_gets_no_buttons_and_no_links_elsewhere(garden: Garden) -> None:
    grow(garden)
    visitor = Visitor(*BARE)
    page = see(visitor)
    assert page.status == 200
    markup = Markup(page.source)
    assert "formaction" not in {name for _, each in markup.elements for name in each}
    body = page.source.partition('<div id="content-main"')[2]
    links = {each.partition("?")[0] for each in Markup(body).values("href")}
    assert links == {visitor.url("overview")}
    assert see(Visitor("view_job", "view_queue", "view_process")).status == 403
    assert see(Visitor("view_job"), fragment="1").status == 403
    assert visitor.url("overview") in visitor.see("/admin/").source
    assert visitor.url("overview") not in Visitor("view_job").see("/admin/").source
    assert visitor.client.post(visitor.url("overview")).status_code == 405


@pytest.mark.django_db(transaction=True)
def test_a_queue_is_paused_and_resumed_from_here(garden: Garden) -> None:
    garden.ready(1, "a/b")
    visitor = Visitor("view_overview", "view_queue", "pause_queue")
    for verb, told in (("Pause", "Paused: a/b."), ("Resume", "Resumed: a/b.")):
        page = see(visitor)
        [button] = re.findall(rf'formaction="([^"]*)" aria-label="{verb} a/b"', page.source)
        page = visitor.post(button, {"back": "overview"})
        assert page.messages == [told]
        assert page.response.request["PATH_INFO"] == visitor.url("overview")
    assert not Pause.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_who_pauses_a_queue_stays_with_the_filters(garden: Garden) -> None:
    garden.ready(1, "mail"), garden.ready(1, "<b>&x=1")
    visitor = Visitor("view_overview", "view_queue", "pause_queue")
    page = see(visitor, window="24h", queue="<b>&x=1", other="x")
    [button] = re.findall(r'formaction="([^"]*)" aria-label="Pause', page.source)
    page = visitor.post(html.unescape(button), page.answer())
    assert page.messages == ["Paused: <b>&x=1."]
    assert page.response.request["PATH_INFO"] == visitor.url("overview")
    assert dict(parse_qsl(page.response.request["QUERY_STRING"])) == {
        "window": "24h", "queue": "<b>&x=1",
    }  # fmt: skip
    assert "mail open" not in page


@on_every_database
def test_failures_are_shown_by_their_cause_and_retried_from_here(
    using: str, garden: Garden
) -> None:
    orders = [fail(garden, f"no order {number}") for number in (1, 2, 3)]
    fail(garden, f"{NASTY} 7", task=PATH)
    visitor = Visitor(*EVERYTHING)
    page = see(visitor)
    assert re.search(r"ValueError: no order 3 send 3 \d+ m?s ago \d+ m?s ago 3 failed", page.text)
    assert "<script>alert" not in page.source
    assert "alert('x')" in page
    assert visitor.see(page.link("ValueError: no order 3")).ids == orders[::-1]
    [(_, url), _] = [each for each in buttons(page) if each[0].startswith("Retry all")]
    form = {"csrfmiddlewaretoken": "", **error_groups.RETRY_ALL}
    question = visitor.post(url, form)
    assert "Retry 3 failed jobs?" in question
    assert "Retried 3 jobs." in visitor.post(url, question.answer()).messages
    assert "no order" not in see(visitor)

    looker = Visitor("view_overview", "view_job")
    assert "ValueError" in see(looker)
    assert "Retry all" not in see(looker)
    assert "ValueError" not in see(Visitor("view_overview"))
    assert "ValueError" in see(looker, fragment="1")
    assert "ValueError" not in see(Visitor("view_overview"), fragment="1")


@on_every_database
def test_the_scope_is_that_of_the_address(using: str, garden: Garden) -> None:
    grow(garden)
    visitor = Visitor(*EVERYTHING)
    page = see(visitor, queue="queue2", task="shop.tasks.t2")
    assert "queue0 open" not in page
    assert "queue2 open" in page
    assert "Show all" in page
    assert "1,007" not in see(visitor, window="24h", queue="none")
    for value in ("none", "\0", "x" * 999, "<b>"):
        assert see(visitor, window=value, queue=value, task=value).status == 200
        assert see(visitor, database=value, fragment=value).status == 200


@on_every_database
def test_markup_in_rows_is_shown_as_text(using: str, garden: Garden) -> None:
    garden.claimed(1, queue_name=NASTY, task_path=PATH)
    garden.ready(2, NASTY)
    garden.count(3, NASTY, PATH, finished=3, failed=30)
    Queue(NASTY, using).pause()
    Process.objects.using(using).update(hostname=NASTY)
    present = garden.present(using)
    garden.rows(RecurringTask).create(
        key=NASTY, task_path=NASTY, schedule="0 6 * * *", timezone="UTC", arguments=NASTY,
        backend_name=NASTY, queue_name=NASTY, created_at=present, updated_at=present,
    )  # fmt: skip
    visitor = Visitor(*EVERYTHING)
    for query in ({}, {"queue": NASTY, "task": PATH}, {"fragment": "1"}):
        page = see(visitor, **query)
        assert page.status == 200
        assert "<script>alert" not in page.source
        assert not {"\x1b", "\u202e"} & {*page.text}
        assert "alert('x')" in page
    urls = [each for each in Markup(page.source).values("href") if "/change/" in each]
    assert urls
    for url in urls:
        assert visitor.see(url).status == 200


@pytest.mark.django_db(transaction=True)
def test_damaged_rows_do_not_break_it(garden: Garden) -> None:
    grow(garden)
    with garden.connection.cursor() as cursor:
        for table, column in (
            ("statistics", "queue_name"), ("samples", "queue_name"), ("pauses", "queue_name"),
            ("jobs", "task_path"), ("claimed_executions", "queue_name"), ("processes", "name"),
            ("processes", "metadata"), ("recurring_tasks", "key"), ("recurring_tasks", "schedule"),
            ("failed_executions", "message"), ("failed_executions", "exception_class"),
            ("failed_executions", "fingerprint"), ("failed_executions", "created_at"),
        ):  # fmt: skip
            cursor.execute(
                f"UPDATE steady_queue_{table} SET {column} = CAST(x'ff' AS TEXT) WHERE rowid = "
                f"(SELECT max(rowid) FROM steady_queue_{table})"
            )
            assert see(Visitor(*EVERYTHING), fragment="").status == 200
            assert see(Visitor(*EVERYTHING), fragment="1").status == 200
            cursor.execute(
                f"UPDATE steady_queue_{table} SET {column} = x'ff' WHERE rowid = "
                f"(SELECT max(rowid) FROM steady_queue_{table})"
            )
            assert see(Visitor(*EVERYTHING)).status == 200, (table, column)
        cursor.execute("UPDATE steady_queue_statistics SET minute = rowid * 1e40, finished = 'x'")
    assert see(Visitor(*EVERYTHING)).status == 200


@on_every_database
def test_rows_of_the_far_future_are_left_out(using: str, garden: Garden) -> None:
    for span in (RECENT_HOUR, HOUR):
        garden.count(-(10**9), span=span, failed=1)
    for window in ("1h", "24h", "7d"):
        assert "No task has run" in see(Visitor(*EVERYTHING), window=window)


@pytest.mark.django_db(transaction=True)
def test_numbers_of_a_window_say_so_and_lead_to_no_empty_list(garden: Garden) -> None:
    garden.count(5, failed=7, finished=3)
    page = see(Visitor(*EVERYTHING))
    for said in ("Failed now 0", "Failed in 1 hour", "Tasks in 1 hour"):
        assert said in page
    assert "Errors of jobs that are failed now None: what failed in 1 hour was retried" in page
    assert lists_of_failed(page) == []
    fail(garden, "no order")
    page = see(Visitor(*EVERYTHING))
    assert "Failed now 1" in page
    # And the group of the error.
    filters = [query.keys() - {"state"} for query in lists_of_failed(page)]
    assert filters == [{"queue"}, {"task"}, {"error"}]


def lists_of_failed(page: Page) -> list[dict[str, str]]:
    """Return the filters of the lists of failed jobs that cells of tables lead to."""
    body = page.source.partition('data-part="queues"')[2]
    queries = [dict(parse_qsl(each.partition("?")[2])) for each in Markup(body).values("href")]
    return [each for each in queries if each.get("state") == "failed"]


# --- users who may not see everything ---


class SomeJobs(JobAdmin):
    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).filter(queue_name__startswith="ours")


class SomeQueues(QueuesAdmin):
    def get_queue_names(self, request: Any, names: Any) -> list[str]:
        return [each for each in names if each != "secret"]


class SomeProcesses(ProcessAdmin):
    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).filter(hostname="ours")


class SomeSchedules(RecurringTaskAdmin):
    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).exclude(key="secret")


@pytest.mark.parametrize(
    ("model", "page"),
    [
        (Job, SomeJobs),
        (Process, SomeProcesses),
        (RecurringTask, SomeSchedules),
        (Pause, SomeQueues),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_who_may_not_see_all_rows_does_not_see_their_numbers(
    model: Any, page: Any, garden: Garden, settings: Any
) -> None:
    site = AdminSite(name="narrowed")
    urls: Any = ModuleType("urls")
    register(site)
    site.unregister(model)
    site.register(model, page)
    urls.urlpatterns = [path("admin/", default_site.urls), path("narrowed/", site.urls)]
    settings.ROOT_URLCONF = urls
    visitor = Visitor(*EVERYTHING, site="narrowed")
    garden.ready(1, "secret")
    assert visitor.url("overview").startswith("/narrowed/")
    assert see(visitor).status == 403
    assert see(visitor, fragment="1").status == 403
    is_offered = visitor.url("overview") in visitor.see("/narrowed/").source
    assert is_offered == (page is SomeQueues)


def with_another(alias: str) -> Any:
    mark = pytest.mark.django_db(databases=["default", alias], transaction=True)
    return pytest.param(alias, marks=mark, id=alias)


@pytest.mark.parametrize("other", [*map(with_another, KINDS)])
def test_each_database_has_an_overview(other: str, settings: Any) -> None:
    settings.TASKS = tasks_in("default", other)
    here, there = Garden("default"), Garden(other)
    here.ready(2, "here"), there.ready(3, "there")
    visitor, given = Visitor(*EVERYTHING), Visitor(*EVERYTHING, database=other)
    assert "here open 2" in see(visitor)
    page = see(given)
    assert " there open 3" in page
    assert " here open" not in page
    body = page.source.partition('<div id="content-main"')[2]
    urls = [each for each in Markup(body).values("href") if "steady_queue" in each]
    urls += [*Markup(body).values("formaction"), *Markup(body).values("data-refresh")]
    assert len(urls) > 10
    for url in urls:
        assert f"database={other}" in url


def test_its_files_are_found() -> None:
    for name in ("overview.css", "overview.js"):
        assert finders.find(f"steady_queue/{name}")


@pytest.mark.parametrize(
    ("per_minute", "shown"),
    [
        (0, "0"),
        (0.0244, "< 0.1"),
        (0.583, "0.6"),
        (12.34, "12.3"),
        (999.7, "1,000"),
        (1_234.5, "1,234"),
        (12_345, "12.3 k"),
        (999_700, "1,000 k"),
        (4_321_000_000, "4,321 M"),
    ],
)
def test_rates_have_few_digits(per_minute: float, shown: str) -> None:
    assert overview_tables.rate(per_minute) == shown


@pytest.mark.django_db(transaction=True)
def test_while_nothing_can_be_read_no_numbers_are_shown(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = Finding("table-locked", "problem", "Somebody has locked it.", "Wait.")
    monkeypatch.setattr(closer.access, "held", lambda _: [lock])
    visitor = Visitor(*EVERYTHING)
    for page in (see(visitor, closer="1"), see(visitor, fragment="1")):
        assert page.status == 200
        assert "Problems (1) Somebody has locked it. Wait. (table-locked)" in page
        assert Markup(page.source).values("data-part") == ["problems"]
