"""What the doctor finds is on the page, too; what is dear is looked at less often."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.checks import Error
from django.db import connections
from django.test.utils import CaptureQueriesContext

from steady_queue_core.dialects import PROBLEM, Observation
from steady_queue_core.dialects.database import Database
from steady_queue_core.doctor import Finding, examine
from steady_queue_core.doctor import environment as of_settings
from steady_queue_core.doctor.codes import OF_JOBS
from steady_queue_core.models import ClaimedExecution, ReadyExecution
from steady_queue_core.overview import closer

from ..doctor import causes_of_queues, causes_of_waits
from ..doctor.pasting import require_pasteable
from ..doctor.test_servers import on_postgres, other_session
from ..doctor.ward import CAUSES, Cause
from ..models.everywhere import on_every_database
from .planting import Garden

OF_QUEUES = [
    each
    for each in CAUSES
    if each.plant.__module__ in (causes_of_queues.__name__, causes_of_waits.__name__)
    and each.code not in OF_JOBS
]
#: Where the page leads to; what it tells by itself leads elsewhere.
PAGES = {
    "claim-orphaned": "processes", "limit-stuck": "semaphores", "limit-miscounted": "semaphores",
    "task-unknown": "jobs", "schedule-task-missing": "schedules", "scheduler-late": "schedules",
    "schedule-not-read": "schedules", "retention-undone": "processes",
    "shutdown-timeout-short": "", "failures-many": "errors",
}  # fmt: skip


def codes(garden: Garden, **given: Any) -> list[str]:
    return [each.finding.code for each in garden.look(**given).problems]


@pytest.mark.parametrize("cause", OF_QUEUES, ids=lambda cause: cause.title)
@on_every_database
def test_what_the_doctor_names_is_on_the_page(using: str, cause: Cause, garden: Garden) -> None:
    assert codes(garden) == []
    cause.plant(garden)
    shown = garden.look(closer=True).problems
    assert cause.code in [each.finding.code for each in shown]
    told = {each.code for each in examine(using)} - closer.LEFT_OUT
    assert told <= {each.finding.code for each in shown}
    for each in shown:
        require_pasteable(each.finding.remedy)
        assert each.page == PAGES.get(each.finding.code, each.page)


@pytest.mark.django_db(transaction=True)
def test_errors_of_the_checks_are_on_the_page(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = [Error("Broken.", id="steady_queue.E001")]
    monkeypatch.setattr(of_settings, "run_checks", lambda **_: errors)
    assert codes(garden, closer=True) == ["check-error"]


@pytest.mark.django_db(transaction=True)
def test_settings_that_cannot_be_used_are_told_alone(garden: Garden, settings: Any) -> None:
    settings.TASKS = {}
    assert codes(garden, closer=True) == ["settings-invalid"]


@pytest.mark.django_db(transaction=True)
def test_indexes_are_looked_at_once_in_a_while(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert codes(garden, closer=True) == []
    gone = Finding("index-missing", PROBLEM, "It is gone.")
    monkeypatch.setattr(closer, "DEAREST", [lambda _: [gone]])
    assert codes(garden, closer=True) == []
    closer.forget()
    assert codes(garden, closer=True) == ["index-missing"]


@pytest.mark.django_db(transaction=True)
def test_what_was_found_last_is_told_until_the_next_look(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert codes(garden, closer=True) == []
    causes_of_queues.claims_of_nobody(garden)
    refresh = {"with_schedules": False, "closer": True}
    assert codes(garden) == codes(garden, **refresh) == []
    assert codes(garden, closer=True) == codes(garden) == ["claim-orphaned"]
    garden.rows(ClaimedExecution).all().delete()
    assert codes(garden, **refresh) == ["claim-orphaned"]
    monkeypatch.setattr(closer, "OFTEN", 0.0)
    assert codes(garden, **refresh) == codes(garden) == []


@pytest.mark.django_db(transaction=True)
def test_what_was_found_long_ago_is_not_told(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    causes_of_queues.claims_of_nobody(garden)
    assert codes(garden, closer=True) == codes(garden) == ["claim-orphaned"]
    monkeypatch.setattr(closer, "FORGOTTEN", 0.0)
    assert codes(garden) == []


def test_a_look_that_takes_long_is_not_had_often(monkeypatch: pytest.MonkeyPatch) -> None:
    now, looks, look = [1000.0], [], closer.Look()
    monkeypatch.setattr(closer, "monotonic", lambda: now[0])

    def find() -> list[Finding]:
        looks.append(now[0])
        now[0] += 5
        return []

    for _ in range(300):
        look.findings(find, keep=30.0)
        now[0] += 1
    assert looks == [1000.0, 1105.0, 1210.0]
    look.findings(find, keep=0.0)
    assert len(looks) == 4


@on_every_database
def test_a_locked_table_is_told_and_nothing_is_read(
    using: str, garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = Observation("table-locked", "Somebody has locked it.", "Wait.", PROBLEM)
    kind = type(Database.of(using).dialect)
    with monkeypatch.context() as patch, CaptureQueriesContext(connections[using]) as queries:
        patch.setattr(kind, "examine", lambda *_: [lock])
        seen = [garden.look(closer=True), garden.look(with_schedules=False)]
    assert [[each.finding.code for each in one.problems] for one in seen] == [["table-locked"]] * 2
    assert not any(each.is_read for each in seen)
    assert not [each for each in queries if "ready_executions" in str(each["sql"])]
    # It is seen at once that the lock is gone.
    assert garden.look(with_schedules=False).is_read


@on_postgres
def test_a_table_that_is_locked_does_not_keep_a_page_waiting(using: str, garden: Garden) -> None:
    with other_session(using) as other:
        with other.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {ReadyExecution._meta.db_table} IN ACCESS EXCLUSIVE MODE")
        with connections[using].cursor() as cursor:
            cursor.execute("SET statement_timeout = 10000")
        assert codes(garden, closer=True) == codes(garden) == ["table-locked"]
        with connections[using].cursor() as cursor:
            cursor.execute("RESET statement_timeout")
    assert codes(garden) == []
