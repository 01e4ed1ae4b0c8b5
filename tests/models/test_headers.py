"""What middleware gives jobs on their way, and learns of calls and attempts: on every database."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from steady_queue_core import (
    Batch,
    Discard,
    Fail,
    Preempted,
    Snooze,
    call,
    chain,
    enqueue_many,
    recurring,
    task,
)
from steady_queue_core.arguments import TaskArgumentError
from steady_queue_core.dialects import Link
from steady_queue_core.errors import TaskCancelled
from steady_queue_core.features.headers.facts import MOST_CHARACTERS, MOST_HEADERS, checked_headers
from steady_queue_core.models import Job
from steady_queue_core.retries import constant
from steady_queue_core.schedules import definition as recurring_task
from steady_queue_core.tasks.metadata import JobMetadata, _shared_text

from ..core import middleware
from ..core.driver import Driver
from ..core.middleware import HERE
from ..core.samples import real_transactions
from .everywhere import on_every_database
from .recurrence import MINUTE, Plan, tasks


@pytest.fixture(autouse=True)
def seen() -> Iterator[list[str]]:
    middleware.seen.clear()
    yield middleware.seen
    middleware.seen.clear()


def use(settings: Any, using: str, name: str, **options: Any) -> None:
    settings.TASKS = tasks(using)
    settings.TASKS["default"]["OPTIONS"] |= {"middleware": [f"{HERE}.{name}"], **options}


@task(max_attempts=2, backoff=constant(0))
def greet(name: str = "Ada") -> str:
    return f"Hello {name}"


@task(max_attempts=2, backoff=constant(0), takes_context=True)
def stumble(context: Any) -> dict[str, str]:
    if context.attempt == 1:
        raise LookupError("not yet")
    return dict(context.headers)


@task
async def wave() -> None:
    """Do nothing."""


@task(takes_context=True)
def hand_on(context: Any) -> None:
    context.enqueue(greet, "Bob")


def kept(using: str) -> list[dict[str, str]]:
    jobs = Job.objects.using(using).order_by("pk")
    return [dict(JobMetadata.read(job.metadata).headers) for job in jobs]


@on_every_database
def test_each_job_carries_its_own_headers(using: str, settings: Any, seen: list[str]) -> None:
    use(settings, using, "Carrying")
    greet.enqueue()
    enqueue_many([call(greet), call(greet.using(queue_name="mail", metadata={"order": 17}))])
    assert kept(using) == [
        {"number": "0", "of": "default"},
        {"number": "0", "of": "default"},
        {"number": "1", "of": "mail"},
    ]
    size = len('{"args":[],"kwargs":{}}')
    assert seen[0] == f"default {size} None {{}}"
    assert JobMetadata.read(Job.objects.using(using).latest("pk").metadata).shown == {"order": 17}
    seen.clear()
    Driver(using).work()
    assert seen == [
        f"{size} [('number', '0'), ('of', 'default')]",
        f"{size} [('number', '0'), ('of', 'default')]",
        f"{size} [('number', '1'), ('of', 'mail')]",
    ]


@on_every_database
def test_headers_outlast_attempts_and_changes_by_middleware(
    using: str, settings: Any, seen: list[str]
) -> None:
    use(settings, using, "Carrying")
    result = Driver(using).finish(stumble.enqueue())
    assert result.return_value == {"number": "0", "of": "default"}
    assert result.metadata == {}
    assert seen[1] == seen[2]
    Driver(using).finish(wave.enqueue())
    assert seen[-1].endswith("[('number', '0'), ('of', 'default')]")


@on_every_database
def test_members_of_batches_and_chains_and_calls_of_tasks_carry_headers(
    using: str, settings: Any, seen: list[str]
) -> None:
    use(settings, using, "Carrying")
    with Batch():
        greet.enqueue()
    chain(call(greet), call(greet, "Bob")).enqueue()
    hand_on.enqueue()
    Driver(using).work()
    assert [each["number"] for each in kept(using)] == ["0", "0", "1", "0", "0"]
    links = [Link.read(job.metadata) for job in Job.objects.using(using).order_by("pk")]
    assert [link is not None for link in links] == [True, True, True, False, False]


@task
def follow(*args: str) -> None:
    """Come after another job."""


@on_every_database
def test_callbacks_inherit_what_middleware_lets_them(using: str, settings: Any) -> None:
    use(settings, using, "Inheriting")
    greet.using(queue_name="mail", on_success=follow).enqueue()
    Driver(using).work()
    assert kept(using) == [{"number": "0", "of": "mail"}, {"of": "mail"}]


@pytest.mark.parametrize("name", ["Carrying", "Disinheriting"])
@real_transactions
def test_callbacks_have_no_headers_else(
    settings: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    use(settings, "default", name)
    greet.using(on_success=follow).enqueue()
    Driver().work()
    assert kept("default") == [{"number": "0", "of": "default"}, {}]
    assert Job.objects.filter(finished_at=None).count() == 0
    events = [vars(record).get("event") for record in caplog.records]
    assert ("task.headers_lost" in events) is (name == "Disinheriting")


@on_every_database
def test_a_run_of_a_recurring_task_says_so(
    using: str, settings: Any, monkeypatch: pytest.MonkeyPatch, seen: list[str]
) -> None:
    monkeypatch.setattr(recurring_task, "_registry", {})
    use(settings, using, "Carrying")
    plan = Plan(using)
    recurring(schedule=MINUTE, key="greetings")(greet)
    plan.begin()
    plan.pass_by(MINUTE)
    assert [line.split()[2] for line in seen] == ["greetings"]
    assert kept(using) == [{"number": "0", "of": "default"}]


@on_every_database
def test_forged_headers_are_none_and_hurt_nobody(
    using: str, settings: Any, seen: list[str]
) -> None:
    use(settings, using, "Carrying")
    forged: list[Any] = [
        5,
        None,
        [],
        "text",
        {"number": 5},
        {"": "empty"},
        {"a\nb": "c"},
        {"n" * 200: "long"},
        {"number": "x" * (MOST_CHARACTERS + 1)},
        {str(number): "x" for number in range(MOST_HEADERS + 1)},
        {"deep": {"deeper": []}},
    ]
    results = [greet.enqueue() for _ in forged]
    seen.clear()
    for result, headers in zip(results, forged, strict=True):
        row = Job.objects.using(using).filter(pk=result.id)
        row.update(metadata=json.dumps({"headers": headers, "max_snoozes": 3}))
    Driver(using).work()
    assert [line.partition(" ")[2] for line in seen] == ["[]"] * len(forged)
    for result in results:
        result.refresh()
        assert result.return_value == "Hello Ada"


@real_transactions
def test_a_middleware_that_gives_no_texts_is_told(settings: Any) -> None:
    use(settings, "default", "Careless")
    with pytest.raises(ValueError, match=r"^the header 'answer' is text, not int$"):
        greet.enqueue()
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ([], "headers are a dict of names and texts, not list"),
        ({1: "x"}, "the name of a header is printable ASCII text, not 1"),
        ({"ä": "x"}, "the name of a header is printable ASCII text, not 'ä'"),
        ({"n" * 129: "x"}, "the header 'nnnnnnnnnnnnnnnnnnnn'... has a longer name than 128"),
        ({"n": "x" * 16384}, "the headers of a job have 16384 characters, not 16385"),
        ({str(n): "" for n in range(33)}, "a job has 32 headers at most, not 33"),
    ],
)
def test_what_may_be_a_header(headers: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        checked_headers(headers)


def test_the_stored_form_of_metadata_with_headers_is_not_remembered() -> None:
    plain, carrying = JobMetadata(max_snoozes=3), JobMetadata(max_snoozes=3).carrying({"a": "b"})
    for each in (plain, carrying):
        assert JobMetadata.read(each.text()) == each
    before = _shared_text.cache_info()
    assert carrying.text() == carrying.text() != plain.text()
    after = _shared_text.cache_info()
    assert (after.hits + after.misses) - (before.hits + before.misses) == 1  # That of plain.


def test_what_is_shown_of_a_jobs_metadata_can_be_changed_without_a_trace() -> None:
    text = JobMetadata(user={"seen": [1, {"at": "noon"}]}).text()
    shown = JobMetadata.read(text).shown
    shown["seen"][1]["at"] = "night"
    shown["seen"].append(2)
    assert JobMetadata.read(text).shown == {"seen": [1, {"at": "noon"}]}


@real_transactions
def test_headers_have_room_beside_metadata_that_fill_theirs(settings: Any) -> None:
    use(settings, "default", "Carrying", max_payload_bytes=200)
    most = {"text": "x" * 170}
    with pytest.raises(TaskArgumentError):
        greet.using(metadata={"text": "x" * 200}).enqueue()
    result = Driver().finish(greet.using(metadata=most).enqueue())
    assert (result.return_value, result.metadata) == ("Hello Ada", most)


# --- how attempts end ------------------------------------------------------------------------

ENDINGS: dict[str, Any] = {
    "failure": lambda: LookupError("broken"),
    "fail": lambda: Fail("never"),
    "snooze": lambda: Snooze(timedelta(hours=1)),
    "discard": lambda: Discard("not needed"),
    "cancelled": lambda: TaskCancelled(),
    "preempted": lambda: Preempted("not true"),
}


@task(max_attempts=2, backoff=constant(0))
def end(how: str) -> None:
    raise ENDINGS[how]()


@task(max_attempts=2, backoff=constant(0))
async def end_in_a_coroutine(how: str) -> None:
    raise ENDINGS[how]()


@pytest.mark.parametrize("ending", [end, end_in_a_coroutine])
@pytest.mark.parametrize(
    ("how", "endings"),
    [
        ("failure", ["retried 11", "failed 10"]),
        ("fail", ["failed 10"]),
        ("snooze", ["snoozed 00"]),
        ("discard", ["discarded 00"]),
        ("cancelled", ["cancelled 00"]),
        ("preempted", ["retried 11", "failed 10"]),
    ],
)
@real_transactions
def test_middleware_learns_how_an_attempt_ends(
    settings: Any, seen: list[str], ending: Any, how: str, endings: list[str]
) -> None:
    use(settings, "default", "Judging")
    done = Driver()
    ending.enqueue(how)
    ran = done.work()
    assert seen == endings
    stored = [str(each.outcome.ending) for each in ran]
    expected = {"snoozed": "retried", "discarded": "finished", "cancelled": "failed"}
    told = [line.split()[0] for line in endings]
    assert [each.rpartition(".")[2].lower() for each in stored] == [
        expected.get(each, each) for each in told
    ]


@task(max_snoozes=0)
def snoozes_once_too_often() -> None:
    raise Snooze(1)


@task(delivery="at_most_once")
def starts_once() -> None:
    raise Snooze(1)


@task(max_attempts=3, backoff=lambda exception, task_result: None)
def gives_up() -> None:
    raise LookupError("broken")


@pytest.mark.parametrize("ending", [snoozes_once_too_often, starts_once, gives_up])
@real_transactions
def test_middleware_learns_that_no_attempt_follows(
    settings: Any, seen: list[str], ending: Any
) -> None:
    use(settings, "default", "Judging")
    Driver().finish(ending.enqueue())
    assert seen == ["failed 10"]


@real_transactions
def test_a_random_delay_is_chosen_once(settings: Any, seen: list[str]) -> None:
    use(settings, "default", "Judging")
    delays.clear()
    Driver().finish(hesitates.enqueue())
    assert (seen, delays) == (["retried 11", "failed 10"], [1])


delays: list[int] = []


def _delay(exception: BaseException, task_result: Any) -> float:
    delays.append(1)
    return 0


@task(max_attempts=2, backoff=_delay)
def hesitates() -> None:
    raise LookupError("broken")


@real_transactions
def test_success_is_an_ending_as_well(settings: Any, seen: list[str]) -> None:
    use(settings, "default", "Judging")
    Driver().finish(greet.enqueue())
    assert seen == ["finished"]
