"""The attempts of a job on its page: their times, processes and outcomes, and their tracebacks."""

from __future__ import annotations

import json
import re
import sysconfig
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

import steady_queue_core
from steady_queue_core import task
from steady_queue_core.admin.detail import library, pieces_of
from steady_queue_core.models import Job, Process
from steady_queue_core.processes.worker.error_text import Attempted, Failure, appended
from steady_queue_core.tasks import stored_errors as stored
from steady_queue_core.tasks.metadata import JobMetadata
from steady_queue_core.tasks.results import errors_of
from steady_queue_core.tasks.stored_errors import StoredError, stored_errors

from ..command_line.invoking import invoke
from ..core.driver import Driver
from .places import Scene, on_every_database
from .visitor import EVERYTHING, Page, Visitor

BEGAN = datetime(2026, 1, 31, 12, 0, 5, tzinfo=UTC)


@task(max_attempts=2, backoff=lambda error, result: 0.0)
def fail() -> None:
    """Fail in code of the project."""
    raise LookupError("no such order")


def page_of(job_id: int, *permissions: str) -> Page:
    visitor = Visitor(*(permissions or EVERYTHING))
    return visitor.see(visitor.url("job", "change", job_id))


@on_every_database
def test_an_attempt_tells_when_how_long_and_by_which_process(using: str, scene: Scene) -> None:
    driver = Driver(using)
    result = fail.enqueue()
    driver.work()
    driver.dispatch()
    driver.work()
    result.refresh()
    assert [error.exception_class for error in result.errors] == [LookupError, LookupError]
    job = Job.objects.using(using).get(pk=result.id)
    first, second = stored_errors(job.errors)
    assert (first.attempt, second.attempt) == (1, 2)
    assert first.worker == second.worker == driver.name
    assert first.started_at is not None
    assert second.started_at is not None
    assert first.started_at <= second.started_at
    assert 0 <= (first.seconds or 0) < 60
    page = page_of(job.pk)
    text = page.text.partition("Attempts, most recent first")[2]
    names = "builtins.LookupError"
    row = r"%s 20\d\d-\d\d-\d\d [0-9:]+ C[DS]T \d+ ms " + re.escape(driver.name) + " %s " + names
    assert re.search(row % (2, "failed") + ".*" + row % (1, "failed, tried again"), text), text
    process = Process.objects.using(using).get(name=driver.name)
    url = Visitor(*EVERYTHING).url("process", "change", process.pk)
    assert f'href="{url}' in page.source
    assert f'href="{url}' not in page_of(job.pk, "view_job").source
    process.delete()
    assert f'href="{url}' not in page_of(job.pk).source
    assert driver.name in page_of(job.pk)


@on_every_database
def test_an_attempt_that_goes_on_or_has_succeeded_is_among_them(using: str, scene: Scene) -> None:
    [claim] = scene.claimed(1)
    page = page_of(claim.job_id)
    text = page.text.partition("Attempts, most recent first")[2]
    assert re.search(r" 1 20[^a-z]*T worker-1 .* running", text), text
    [finished] = scene.finished(1)
    Job.objects.using(using).filter(pk=finished).update(
        attempts=1, worker_ids='["worker-9"]', finished_at=BEGAN + timedelta(seconds=3),
        last_attempted_at=BEGAN, errors=json.dumps([["app.Late", "Traceback: once"]]),
    )  # fmt: skip
    page = page_of(finished)
    assert "1 2026-01-31 06:00:05 CST 3 s worker-9 finished failed, tried again app.Late" in page
    [ready] = scene.ready(1)
    assert "Attempts, most recent first" not in page_of(ready)


def test_errors_of_earlier_versions_are_read_and_kept() -> None:
    old = json.dumps([["a.B", "first"], ["a.C", "second"]])
    attempt = Attempted.of(3, BEGAN, BEGAN + timedelta(seconds=1.5), "worker-1")
    text = appended(old, Failure("a.D", "message", "third"), attempt)
    assert json.loads(text)[:2] == json.loads(old)
    assert errors_of(text) == [["a.B", "first"], ["a.C", "second"], ["a.D", "third"]]
    assert stored_errors(text)[2] == StoredError("a.D", "third", 3, BEGAN, 1.5, "worker-1")
    again = appended(text, Failure("a.E", "message", "fourth"))
    assert stored_errors(again)[2] == stored_errors(text)[2]
    assert json.loads(again)[3] == ["a.E", "fourth"]


@pytest.mark.parametrize(
    "known",
    [
        7, None, [], {"attempt": "1"}, {"attempt": True}, {"attempt": -1}, {"attempt": 10**400},
        {"seconds": "1"}, {"seconds": -1}, {"seconds": 1e400}, {"started_at": "yesterday"},
        {"started_at": 5}, {"started_at": "2026-01-01T00:00:00"}, {"worker": 5}, {"worker": None},
    ],
)  # fmt: skip
def test_what_is_damaged_of_an_attempt_is_not_known(known: Any) -> None:
    text = json.dumps([["a.B", "text", known]])
    assert stored_errors(text) == [StoredError("a.B", "text")]


@on_every_database
def test_the_page_makes_no_more_than_a_dozen_queries(using: str, scene: Scene) -> None:
    [job] = scene.failed(1)
    errors = [StoredError("a.B", "text", n, BEGAN, 1.0, f"worker-{n}").stored for n in range(1, 30)]
    Job.objects.using(using).filter(pk=job).update(errors=json.dumps(errors))
    visitor = Visitor(*EVERYTHING)
    with (
        CaptureQueriesContext(connections["default"]) as ours,
        CaptureQueriesContext(connections[using]) as theirs,
    ):
        page = visitor.see(visitor.url("job", "change", job))
    assert "The last 20 failures." in page
    assert len(ours) + (len(theirs) if using != "default" else 0) <= 12


STDLIB = sysconfig.get_paths()["stdlib"]
PACKAGE = Path(steady_queue_core.__file__).parent
TRACEBACK = f'''Traceback (most recent call last):
  File "{PACKAGE}/processes/worker/attempt.py", line 7, in run
    call()
  File "/srv/shop/orders.py", line 12, in ship
    post(order)
    ^^^^^^^^^^^
  File "/srv/venv/lib/python3.13/site-packages/requests/api.py", line 3, in post
    return request()
  File "/srv/venv/lib/python3.13/site-packages/urllib3/pool.py", line 4, in open
    connect()
  [Previous line repeated 3 more times]
  File "{STDLIB}/socket.py", line 8, in connect
    raise error
ConnectionError: no
such <b>host</b>

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "C:\\\\shop\\\\orders.py", line 20, in ship
    raise Late from error
app.Late: too late
'''


def test_frames_of_libraries_are_folded() -> None:
    found = pieces_of(TRACEBACK)
    assert [piece.summary for piece in found] == [
        "", "1 frame of steady_queue_core", "", "3 frames of requests, urllib3, Python", ""
    ]  # fmt: skip
    assert "[Previous line repeated" in found[3].text
    assert found[2].text.startswith('  File "/srv/shop/orders.py"')
    assert found[2].text.endswith("^^^^^^^^^^^")
    assert found[4].text.startswith("ConnectionError: no\nsuch <b>host</b>")
    assert "\n".join(piece.text for piece in found) + "\n" == TRACEBACK


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "no traceback",
        '  File "x',
        '  File "x", line 1',
        "    ",
        'File "", line 1\n ' * 5,
    ],
)
def test_any_text_is_a_traceback(text: str) -> None:
    assert "\n".join(piece.text for piece in pieces_of(text)) == text.rstrip("\n")


def test_frames_of_a_group_of_exceptions_are_told_apart() -> None:
    text = (
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "/srv/shop/orders.py", line 1, in ship\n'
        "  |     post()\n"
        '  |   File "/x/site-packages/requests/api.py", line 2, in post\n'
        "  |     raise error\n"
        "  | ExceptionGroup: two (2 sub-exceptions)\n"
        "  +-+---------------- 1 ----------------\n"
    )
    assert [piece.summary for piece in pieces_of(text)] == ["", "1 frame of requests", ""]


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("/srv/shop/orders.py", ""),
        ("/home/me/lib/python/shop.py", ""),
        ("/usr/lib/python3/dist-packages/django/db.py", "django"),
        ("C:\\Python\\Lib\\site-packages\\six.py", "six"),
        ("/opt/python/lib/python3.12/json/decoder.py", "Python"),
        ("<frozen importlib._bootstrap>", "Python"),
        ("<string>", ""),
        (f"{PACKAGE}/task.py", "steady_queue_core"),
    ],
)
def test_the_library_of_a_file(path: str, owner: str) -> None:
    assert library(path) == owner


@pytest.mark.django_db
def test_the_page_folds_without_a_script(scene: Scene) -> None:
    [job] = scene.failed(1)
    Job.objects.filter(pk=job).update(errors=json.dumps([["app.Late", TRACEBACK]]))
    page = page_of(job)
    assert '<summary class="quiet">3 frames of requests, urllib3, Python</summary>' in page.source
    assert "such &lt;b&gt;host&lt;/b&gt;" in page.source
    assert "style=" not in page.source.partition('id="content-main"')[2]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ({"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}, "ab" * 16),
        ({"sentry-trace": f"{'ab' * 16}-{'cd' * 8}"}, "ab" * 16),
        ({"sentry-trace": f"{'ab' * 16}-{'cd' * 8}-1", "baggage": "x"}, "ab" * 16),
        ({"traceparent": "<script>"}, ""),
        ({"sentry-trace": f"{'ab' * 16}-{'cd' * 8}-<b>"}, ""),
        ({}, ""),
    ],
)
def test_the_page_names_the_trace(scene: Scene, headers: dict[str, str], shown: str) -> None:
    [job] = scene.ready(1)
    stored = JobMetadata(headers=headers).text() if headers else None
    Job.objects.filter(pk=job).update(metadata=stored)
    page = page_of(job, "view_job")
    assert ("Trace" in page) is bool(shown)
    assert f"Trace {shown}" in page or not shown
    assert "script>" not in page.source.partition('id="content-main"')[2]


@pytest.mark.django_db(transaction=True)
def test_of_very_many_errors_the_last_ones_are_read(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [[f"shop.Error{number}", f"Traceback {number}"] for number in range(50_000)]
    job_id = failed_with(json.dumps([7, *many, ["damaged"]]))
    read: list[Any] = []
    kind = stored.StoredError
    monkeypatch.setattr(stored, "StoredError", lambda *given: read.append(given) or kind(*given))
    page = page_of(job_id)
    assert len(read) <= 3 * 20
    assert "The last 20 of 50000 errors." in page.text
    assert "The last 20 failures." in page.text
    assert "50000. shop.Error49999" in page.text
    assert "shop.Error49979" not in page.text
    assert len(page.source) < 200_000
    told = invoke("show", job_id)
    assert "  errors of attempts, the first one first, without the 49,980 before:" in told.lines
    assert told.lines[-1] == "    shop.Error49999"


@pytest.mark.django_db(transaction=True)
def test_errors_that_are_too_long_to_read_are_told(scene: Scene) -> None:
    text = json.dumps([["shop.Error", "x" * 100]] * 60_000)
    job_id = failed_with(text)
    Job.objects.filter(pk=job_id).update(worker_ids=text)
    page = page_of(job_id)
    assert page.text.count(f"The stored {len(text):,} characters are too long to show.") == 2
    assert "shop.Error" not in page.text
    assert "  errors of attempts: too long to show" in invoke("show", job_id).lines


def failed_with(errors: str) -> int:
    """Return the id of a job that has failed, with these stored errors."""
    result = fail.enqueue()
    driver = Driver()
    driver.work()
    Job.objects.filter(pk=result.id).update(errors=errors)
    return int(result.id)
