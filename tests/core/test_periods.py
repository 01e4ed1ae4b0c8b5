"""Expiry and retention as options of tasks, calls and backends: what is stored, what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.utils import timezone as present

from steady_queue_core import call, enqueue_many, task
from steady_queue_core.compat import InvalidTask
from steady_queue_core.models import Job
from steady_queue_core.tasks.metadata import JobMetadata

from ..models.recurrence import tasks

PATH = "tests.core.test_periods.greet"
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
#: The last instant that has a date in each time zone.
LATEST = datetime.max - timedelta(days=1)
SOME_DAY = datetime(2030, 1, 1, 12, tzinfo=UTC)


@task
def greet() -> None:
    """Do nothing."""


@task(expires=HOUR, retention=7 * DAY, failure_retention="forever")
def remind() -> None:
    """Do nothing."""


def kept(**expected: Any) -> JobMetadata:
    return JobMetadata(**expected)


def stored() -> JobMetadata:
    """Return what the newest job keeps."""
    job = Job.objects.latest("pk")
    return JobMetadata.read(job.metadata)


@pytest.mark.django_db
def test_a_job_keeps_the_periods_of_its_task_and_its_call() -> None:
    remind.enqueue()
    of_task = kept(expires=HOUR, retention=7 * DAY, failure_retention="forever")
    assert stored() == of_task
    remind.using(priority=3, expires=MINUTE, retention=timedelta(0)).enqueue()
    assert stored() == kept(expires=MINUTE, retention=timedelta(0), failure_retention="forever")
    remind.using(metadata={"order": 1}, retention="forever").enqueue()
    assert stored().expires == HOUR
    assert stored().retention == "forever"
    results = enqueue_many([call(greet), call(greet.using(expires=MINUTE)), call(remind)])
    found = [JobMetadata.read(Job.objects.get(pk=each.id).metadata) for each in results]
    assert found == [kept(), kept(expires=MINUTE), of_task]


@pytest.mark.django_db
def test_a_time_of_expiry_is_stored_in_utc() -> None:
    there = timezone(timedelta(hours=9))
    greet.using(expires=SOME_DAY.astimezone(there)).enqueue()
    assert stored().expires == SOME_DAY
    assert stored().deadline(present.now()) == SOME_DAY


@pytest.mark.django_db
def test_a_job_without_any_keeps_nothing() -> None:
    greet.enqueue()
    assert Job.objects.get().metadata is None
    remind_only = greet.using(expires="never")
    remind_only.enqueue()
    assert Job.objects.latest("pk").metadata is None


@pytest.mark.django_db
def test_a_backend_has_its_jobs_expire_unless_their_task_or_call_says_otherwise(
    settings: Any,
) -> None:
    settings.TASKS = tasks("default", expires=DAY)
    greet.enqueue()
    assert stored() == kept(expires=DAY)
    remind.enqueue()
    assert stored().expires == HOUR
    greet.using(metadata={"order": 1}).enqueue()
    assert stored() == kept(expires=DAY, user={"order": 1})
    greet.using(expires="never").enqueue()
    assert Job.objects.latest("pk").metadata is None
    remind.using(expires="never").enqueue()
    assert stored() == kept(retention=7 * DAY, failure_retention="forever")


OF_EXPIRES = (
    "expires must be a timedelta of more than 0 and at most 3650 days, an aware datetime or 'never'"
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"expires": 60}, f"{OF_EXPIRES}, not int 60."),
        ({"expires": timedelta(0)}, f"{OF_EXPIRES}, not timedelta datetime.timedelta(0)."),
        ({"expires": timedelta(days=3651)}, OF_EXPIRES),
        ({"expires": "forever"}, f"{OF_EXPIRES}, not str 'forever'."),
        ({"retention": 60}, "retention must be a timedelta from 0 to 3650 days or 'forever', not "
                            "int 60."),
        ({"retention": "never"}, "retention must be a timedelta from 0 to 3650 days or 'forever'"),
        ({"failure_retention": -HOUR}, "failure_retention must be a timedelta from 0 to 3650 days"),
    ],
)  # fmt: skip
def test_wrong_periods_are_refused_where_they_are_given(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTask) as raised:
        greet.using(**options)
    assert str(raised.value).startswith(f"{PATH}: {message}")
    with pytest.raises(InvalidTask) as raised:
        task(**options)(greet.func)
    assert str(raised.value).startswith(f"{PATH} (")
    assert message in str(raised.value)


def test_a_time_is_for_one_call_and_has_a_zone() -> None:
    with pytest.raises(
        InvalidTask, match=r"expires is a time at which all jobs would expire: 2030"
    ):
        task(expires=SOME_DAY)(greet.func)
    with pytest.raises(
        InvalidTask, match=r"expires is a naive datetime, 2030-01-01T12:00:00: give"
    ):
        greet.using(expires=SOME_DAY.replace(tzinfo=None))
    with pytest.raises(InvalidTask, match=r"expires lies outside the years 1 to 9999 in UTC"):
        greet.using(expires=datetime.max.replace(tzinfo=timezone(-HOUR)))


@pytest.mark.django_db
def test_without_use_tz_a_naive_time_is_local(settings: Any) -> None:
    settings.USE_TZ, settings.TIME_ZONE = False, "Asia/Kathmandu"
    now = present.now()
    assert now.tzinfo is None
    naive = greet.using(expires=now + HOUR)
    aware = greet.using(expires=datetime.now(UTC) + HOUR)
    assert abs(naive.job_metadata.expires - aware.job_metadata.expires) < timedelta(minutes=1)
    for due in (now, now.astimezone(UTC), timedelta(0)):
        naive.using(run_after=due).enqueue()
        greet.using(expires=HOUR, run_after=due).enqueue()
    assert Job.objects.count() == 6
    for due in (now + 2 * HOUR, 2 * HOUR):
        for variant in (naive, greet.using(expires=HOUR)):
            with pytest.raises(InvalidTask, match="would expire before it is due"):
                variant.using(run_after=due).enqueue()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("run_after", "expires"),
    [
        (HOUR, HOUR),
        (2 * HOUR, HOUR),
        (SOME_DAY, SOME_DAY),
        (SOME_DAY + HOUR, SOME_DAY),
        (SOME_DAY, HOUR),
        (3650 * DAY, SOME_DAY),
        (LATEST.replace(tzinfo=UTC), 3650 * DAY),
    ],
)
def test_a_job_that_would_expire_before_it_is_due_is_refused(run_after: Any, expires: Any) -> None:
    variant = greet.using(run_after=run_after, expires=expires)
    with pytest.raises(InvalidTask) as raised:
        variant.enqueue()
    told = str(raised.value)
    assert told.startswith(f"{PATH}: the job would expire before it is due: expires is ")
    assert told.endswith(" Let it expire later, or never: using(expires='never').")
    assert not Job.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("run_after", "expires"),
    [
        (HOUR, 2 * HOUR),
        (SOME_DAY, SOME_DAY + HOUR),
        (HOUR, SOME_DAY),
        (datetime(2020, 1, 1, tzinfo=UTC), HOUR),
        (LATEST.replace(tzinfo=UTC), "never"),
    ],
)
def test_a_job_that_is_due_before_it_expires_is_stored(run_after: Any, expires: Any) -> None:
    greet.using(run_after=run_after, expires=expires).enqueue()
    # Also when its time has passed already: it expires when it comes to be claimed.
    greet.using(expires=datetime(2020, 1, 1, tzinfo=UTC)).enqueue()
    assert Job.objects.count() == 2


@pytest.mark.django_db
def test_the_option_that_is_in_the_way_is_named(settings: Any) -> None:
    settings.TASKS = tasks("default", expires=HOUR)
    with pytest.raises(
        InvalidTask, match=r"TASKS\['default'\]\['OPTIONS'\]\['expires'\] is 1:00:00"
    ):
        greet.using(run_after=DAY).enqueue()
    greet.using(run_after=DAY, expires=2 * DAY).enqueue()


@pytest.mark.parametrize(
    "text",
    [
        '{"expires":60}', '{"expires":"never"}', '{"retention":"never"}', '{"retention":-1}',
        '{"failure_retention":[1]}', '{"expires":{"a":1}}',
    ],
)  # fmt: skip
def test_a_damaged_row_has_no_periods(text: str) -> None:
    assert JobMetadata.read(text) == kept()
