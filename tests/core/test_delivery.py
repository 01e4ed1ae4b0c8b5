"""How a delivery is chosen, refused and stored."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections
from django.test.utils import override_settings

from steady_queue_core import call, enqueue_many, task
from steady_queue_core.backend_options import BackendOptions
from steady_queue_core.checks import check_transactional_tasks
from steady_queue_core.compat import InvalidTask
from steady_queue_core.configuration import ConfigurationError
from steady_queue_core.models import Job
from steady_queue_core.tasks import registry
from steady_queue_core.tasks.metadata import NONE, JobMetadata

from ..models.recurrence import BACKEND, tasks

PATH = "tests.core.test_delivery"


@task
def plain() -> None:
    """Do nothing."""


@task(max_attempts=3)
def patient() -> None:
    """Do nothing."""


@task(delivery="at_most_once")
def once() -> None:
    """Do nothing."""


@task(delivery="at_least_once", max_crashes=2, metadata={"team": "mail"})
def often() -> None:
    """Do nothing."""


@task(delivery="transactional", max_attempts=4)
def exactly() -> None:
    """Do nothing."""


async def coroutine() -> None:
    """Do nothing."""


def stored() -> list[tuple[str | None, int]]:
    """Return the delivery and the attempts of each job."""
    jobs = Job.objects.order_by("pk")
    return [(JobMetadata.read(job.metadata).delivery, job.max_attempts) for job in jobs]


@pytest.mark.django_db
def test_the_delivery_is_kept_with_the_job() -> None:
    for each in (once, often, exactly, plain.using(delivery="transactional")):
        each.enqueue()
    expected = [("at_most_once", 1), ("at_least_once", 1), ("transactional", 4)]
    assert stored() == [*expected, ("transactional", 1)]
    metadata = JobMetadata.read(Job.objects.all()[1].metadata)
    assert (metadata.max_crashes, metadata.shown) == (2, {"team": "mail"})


@pytest.mark.django_db
def test_plain_jobs_keep_nothing() -> None:
    enqueue_many([call(plain), call(patient), call(exactly.using(priority=1))])
    assert stored() == [(None, 1), (None, 3), ("transactional", 4)]
    assert Job.objects.filter(metadata=None).count() == 2


@pytest.mark.django_db
def test_the_backend_decides_for_tasks_that_do_not(settings: Any) -> None:
    settings.TASKS = tasks("default", delivery="at_least_once", max_crashes=9)
    plain.enqueue()
    once.enqueue()
    often.using(metadata={"a": 1}).enqueue()
    assert [delivery for delivery, _ in stored()] == [
        "at_least_once", "at_most_once", "at_least_once",
    ]  # fmt: skip


@pytest.mark.django_db
def test_at_most_once_means_one_attempt_whatever_the_backend_says(settings: Any) -> None:
    settings.TASKS = tasks("default", max_attempts=7)
    once.enqueue()
    plain.using(delivery="at_most_once").enqueue()
    plain.enqueue()
    assert stored() == [("at_most_once", 1), ("at_most_once", 1), (None, 7)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"delivery": "at_most_onse"},
            "delivery 'at_most_onse' is not valid; did you mean 'at_most_once'?",
        ),
        (
            {"delivery": 5},
            "delivery 5 is not valid; valid are 'at_least_once', 'at_most_once', 'transactional'",
        ),
        (
            {"delivery": "at_most_once", "max_attempts": 3},
            "max_attempts must be 1 with delivery='at_most_once', not 3: a second attempt is a "
            "second start. Leave it out, or choose another delivery.",
        ),
        (
            {"delivery": "at_most_once", "max_snoozes": 3},
            "max_snoozes does not go with delivery='at_most_once': a job that comes back starts "
            "again. Leave it out, or choose another delivery.",
        ),
        (
            {"delivery": "at_least_once", "max_crashes": 0},
            "max_crashes must be a whole number from 1 to 1000, not 0.",
        ),
        (
            {"delivery": "transactional", "max_crashes": 3},
            "max_crashes belongs to delivery='at_least_once': otherwise each crash uses up an "
            "attempt. Choose that delivery, or leave it out.",
        ),
        (
            {"max_crashes": 3},
            "max_crashes belongs to delivery='at_least_once': otherwise each crash uses up an "
            "attempt. Choose that delivery, or leave it out.",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_at_the_decoration(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTask) as raised:
        task(**options)(plain.func)
    assert str(raised.value).startswith(f"{PATH}.plain (")
    assert str(raised.value).endswith(f": {message}")


def test_a_coroutine_cannot_be_part_of_a_transaction() -> None:
    with pytest.raises(InvalidTask, match="A coroutine cannot be delivered 'transactional'"):
        task(delivery="transactional")(coroutine)
    decorated = task(delivery="at_least_once")(coroutine)
    with pytest.raises(InvalidTask, match="A coroutine cannot be delivered 'transactional'"):
        decorated.using(delivery="transactional")
    with override_settings(TASKS=tasks("default", delivery="transactional")):
        with pytest.raises(InvalidTask, match="A coroutine cannot be delivered 'transactional'"):
            task(coroutine)
        assert task(delivery="at_least_once")(coroutine).job_metadata is not None


def test_one_call_cannot_be_delivered_against_the_options_of_its_task() -> None:
    with pytest.raises(InvalidTask, match="max_attempts must be 1 with delivery='at_most_once'"):
        patient.using(delivery="at_most_once")
    with pytest.raises(InvalidTask, match="did you mean 'transactional'"):
        patient.using(delivery="transactionel")
    assert once.using(priority=3).job_metadata == once.job_metadata


def test_wrong_options_of_a_backend_are_reported_and_stop_no_declaration(settings: Any) -> None:
    with pytest.raises(ConfigurationError) as raised:
        BackendOptions.parse(
            "default", {"delivery": "at_most_once", "max_attempts": 3, "max_crashes": 0}
        )
    assert sorted(raised.value.problems) == [
        "TASKS['default']['OPTIONS']['max_attempts']: must be 1, or left out, with the delivery "
        "'at_most_once': a second attempt is a second start",
        "TASKS['default']['OPTIONS']['max_crashes']: expected an integer of at least 1 and at most "
        "1000, got int 0",
    ]
    with pytest.raises(ConfigurationError, match="'at_most_once' or 'at_least_once'"):
        BackendOptions.parse("default", {"delivery": "never"})
    settings.TASKS = tasks("default", delivery="never", max_attempts="many")
    assert task(plain.func).job_metadata is None


def test_damaged_metadata_choose_no_delivery() -> None:
    for text in ('{"delivery": "always"}', '{"delivery": ["a"]}', '{"crashes": ["a"]}'):
        assert JobMetadata.read(text) == NONE
    kept = JobMetadata(delivery="at_least_once", crashes=("worker-1", "worker-2"))
    assert JobMetadata.read(kept.text()) == kept


@pytest.mark.django_db
def test_metadata_are_read_however_large_they_were_allowed_to_be(settings: Any) -> None:
    settings.TASKS = tasks("default", max_payload_bytes=2**21)
    exactly.using(metadata={"text": "x" * (2**20 - 100)}).enqueue()
    assert stored() == [("transactional", 4)]


class Elsewhere:
    """Has all models of the project in a database without jobs."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return "default" if model._meta.app_label == "steady_queue" else "elsewhere"

    db_for_write = db_for_read


def test_transactional_tasks_are_warned_of_where_they_keep_others_waiting(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": []}}
    monkeypatch.setattr(registry, "_registered", {exactly.module_path: exactly})
    [found] = check_transactional_tasks(None)
    assert found.id == "steady_queue.W015"
    assert f"is delivered transactionally: {PATH}.exactly." in found.msg
    monkeypatch.setattr(connections["default"].features, "has_select_for_update", True)
    assert check_transactional_tasks(None) == []
    settings.DATABASE_ROUTERS = [Elsewhere()]
    [found] = check_transactional_tasks(None)
    assert found.id == "steady_queue.W016"
    assert f"no model of the project is written: {PATH}.exactly." in found.msg
    monkeypatch.setattr(registry, "_registered", {once.module_path: once})
    assert check_transactional_tasks(None) == []
