"""The metadata of a job: the options that are stored there, and their stored form."""

from __future__ import annotations

import pickle
from dataclasses import fields
from datetime import date, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group

from steady_queue_core import Discard, Fail, Retry, Snooze, call, enqueue_many, task
from steady_queue_core.arguments import TaskArgumentError
from steady_queue_core.compat import InvalidTask
from steady_queue_core.endings import ChosenEnding
from steady_queue_core.models import Job
from steady_queue_core.tasks.metadata import JobMetadata

PATH = "tests.core.test_metadata.greet"


@task
def greet(name: str = "Ada") -> str:
    return f"Hello {name}"


@task(metadata={"team": "mail"}, max_snoozes=3)
def remind() -> None:
    """Do nothing."""


@pytest.mark.django_db
def test_a_job_keeps_what_the_caller_passes_as_metadata() -> None:
    given = {"order": 17, "on": date(2030, 1, 1), "tags": ["a", {"b": None}]}
    result = greet.using(metadata=given).enqueue()
    assert result.metadata == greet.get_result(result.id).metadata == given
    given["order"] = 18
    assert greet.get_result(result.id).metadata["order"] == 17


@pytest.mark.django_db
def test_a_job_without_metadata_has_none() -> None:
    result = greet.enqueue()
    assert (result.metadata, Job.objects.get().metadata) == ({}, None)


@pytest.mark.django_db
def test_using_replaces_the_metadata_of_the_task_and_keeps_its_other_options() -> None:
    assert remind.enqueue().metadata == {"team": "mail"}
    assert remind.using(metadata={"order": 17}).enqueue().metadata == {"order": 17}
    assert remind.using(priority=3).enqueue().metadata == {"team": "mail"}
    kept = [JobMetadata.read(job.metadata).max_snoozes for job in Job.objects.all()]
    assert kept == [3, 3, 3]


@pytest.mark.django_db
def test_many_calls_have_their_own_metadata() -> None:
    variants = [greet, greet.using(metadata={"n": 1}), greet.using(metadata={"n": 2})]
    enqueue_many([call(variant) for variant in variants])
    kept = [JobMetadata.read(job.metadata).shown for job in Job.objects.order_by("pk")]
    assert kept == [{}, {"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metadata": [1]}, "metadata must be a dict with strings as keys."),
        ({"metadata": {1: 2}}, "metadata must be a dict with strings as keys."),
        (
            {"metadata": {"discarded": "no"}},
            "the key 'discarded' of metadata is reserved: it tells why a task has discarded "
            "itself. Choose another one.",
        ),
        ({"max_snoozes": -1}, "max_snoozes must be a whole number from 0 to 1000000, not -1."),
        ({"max_snoozes": True}, "max_snoozes must be a whole number from 0 to 1000000, not True."),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTask) as raised:
        greet.using(**options)
    assert str(raised.value) == f"{PATH}: {message}"
    with pytest.raises(InvalidTask) as raised:
        task(**options)(greet.func)
    assert str(raised.value).startswith(f"{PATH} (")
    assert str(raised.value).endswith(message)


def test_metadata_that_cannot_be_stored_is_refused_by_its_path() -> None:
    with pytest.raises(TaskArgumentError, match=r"^metadata\['on'\] cannot be stored"):
        greet.using(metadata={"on": object()})


@pytest.mark.parametrize("name", ["user", "\\u0075ser"])
def test_what_is_changed_in_the_metadata_of_one_job_is_not_changed_in_those_of_another(
    name: str,
) -> None:
    text = f'{{"{name}":{{"shops":[1]}}}}'
    JobMetadata.read(text).shown["shops"].append(2)
    assert JobMetadata.read(text).shown == {"shops": [1]}


def test_metadata_that_differ_only_in_what_the_caller_passes_are_not_mixed_up() -> None:
    one, other = JobMetadata(user={"a": 1}, snoozes=1), JobMetadata(user={"a": True}, snoozes=1)
    assert one == other
    assert one.text() != other.text()
    assert JobMetadata(snoozes=1).text() == JobMetadata(snoozes=1).text() != one.text()


@pytest.mark.django_db
def test_metadata_hold_no_model_instances() -> None:
    group = Group.objects.create(name="a")
    with pytest.raises(TaskArgumentError, match="metadata cannot be stored: there is a model"):
        greet.using(metadata={"group": group})


@pytest.mark.django_db
def test_metadata_that_are_too_large_are_refused_at_the_enqueue(settings: Any) -> None:
    backend = {**settings.TASKS["default"], "OPTIONS": {"max_payload_bytes": 100}}
    settings.TASKS = {**settings.TASKS, "default": backend}
    large = greet.using(metadata={"text": "x" * 100})
    with pytest.raises(TaskArgumentError, match="metadata"):
        large.enqueue()
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Retry(-1), ValueError, "Retry: delay must be a number of seconds"),
        (lambda: Snooze("1"), TypeError, "Snooze: delay must be a number of seconds"),
        (lambda: Snooze(timedelta(0)), ValueError, "Snooze: delay must be more than 0 seconds."),
        (lambda: Discard(None), TypeError, "Discard: reason must be a string, not NoneType"),
        (lambda: Fail(b"no"), TypeError, "Fail: reason must be a string, not bytes"),
    ],
)
def test_an_ending_refuses_what_it_cannot_do(
    make: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


def test_endings_share_a_base_class_and_say_what_they_are() -> None:
    endings = [Retry(), Retry(2), Snooze(timedelta(minutes=1)), Discard("sold out"), Fail()]
    assert all(isinstance(each, ChosenEnding) for each in endings)
    told = ["retry", "retry in 2 s", "snooze for 60 s", "sold out", "fail"]
    assert [str(each) for each in endings] == told


def test_pickles_of_the_release_before_have_the_facts_in_this_order() -> None:
    # Their state is the list of the values: a new fact has its place at the end.
    known = [
        "user", "max_snoozes", "snoozes", "discarded", "delivery", "max_crashes", "crashes",
        "expires", "retention", "failure_retention", "timeout", "timeout_grace", "unique", "rate",
        "slot", "batch", "fair", "on_success", "on_failure", "intended_time", "node", "sources",
        "headers",
    ]  # fmt: skip
    assert [each.name for each in fields(JobMetadata)][: len(known)] == known
    metadata = JobMetadata(user={"a": 1}, expires=timedelta(days=1), headers={"b": "c"})
    assert pickle.loads(pickle.dumps(metadata)) == metadata


def test_a_pickle_that_has_fewer_facts_is_taken_over() -> None:
    found = object.__new__(JobMetadata)
    found.__setstate__([{"a": 1}, 3])
    assert found == JobMetadata(user={"a": 1}, max_snoozes=3)
    assert not hasattr(found, "__dict__")
