"""Groups of failures: on every database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from steady_queue_core.conformance.base import ending
from steady_queue_core.dialects import Ending, portable
from steady_queue_core.fingerprint import MOST_READ, fingerprint_of
from steady_queue_core.listings import error_groups
from steady_queue_core.listings.error_groups import ErrorGroup, ErrorGroups
from steady_queue_core.listings.visibility import VisibleJobs
from steady_queue_core.models import FailedExecution, Job

from .everywhere import Jobs, on_every_database
from .recurrence import tasks

VALUE, KEY = "builtins.ValueError", "builtins.KeyError"


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)


class Failures(Jobs):
    """Failures, each a second after the one before."""

    def __init__(self, using: str) -> None:
        super().__init__(using)
        self.began = self.present(using) - timedelta(days=1)
        self.number = 0

    def fail(
        self, message: str, kind: str = VALUE, *, task: str = "shop.send", queue: str = "mail",
        grouped: bool = True,
    ) -> int:  # fmt: skip
        [claim] = self.claimed(1, queue_name=queue, task_path=task)
        known = {"exception_class": kind, "message": message}
        fingerprint = fingerprint_of(kind, message, task) if grouped else None
        outcome = ending(Ending.FAILED, claim, attempts=1, fingerprint=fingerprint, **known)
        self.dialect.settle(self.connection, [outcome])
        self.rows.filter(pk=claim.job_id).update(created_at=portable.storable(self.time))
        self.number += 1
        return claim.job_id

    @property
    def time(self) -> Any:
        return self.began + timedelta(seconds=self.number)

    @property
    def rows(self) -> Any:
        return FailedExecution.objects.using(self.using)

    def groups(self, limit: int = 20, *, most: int | None = None, **given: str) -> ErrorGroups:
        return error_groups.error_groups(self.using, limit, given, most=most)


def shown(found: ErrorGroups) -> list[tuple[str, int, bool]]:
    return [(each.message, each.count.number, each.count.exact) for each in found.groups]


def damage(using: str, job_id: int, column: str, value: str) -> None:
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"UPDATE steady_queue_failed_executions SET {column} = {value} WHERE job_id = {job_id}"
        )


@on_every_database
def test_failures_with_the_same_cause_are_counted_together(using: str) -> None:
    jobs = Failures(using)
    first = jobs.fail("no order 17\nwhatever")
    jobs.fail("'key'", KEY)
    jobs.fail("no order 18", task="shop.bill")
    last = jobs.fail("no order 'x'\nand more")
    found = jobs.groups()
    assert (found.has_more, found.is_complete, found.ungrouped) == (False, True, 0)
    # The largest first, and of those of one size the last to have failed.
    assert shown(found) == [("no order 'x'", 2, True), ("no order 18", 1, True), ("'key'", 1, True)]
    group = found.groups[0]
    assert isinstance(group, ErrorGroup)
    assert group.fingerprint == fingerprint_of(VALUE, "no order 17", "shop.send")
    assert (group.job_id, group.exception_class, group.task_path) == (last, VALUE, "shop.send")
    instants = [portable.aware(each) for each in (group.first, group.last)]
    assert instants == [jobs.began, jobs.began + timedelta(seconds=3)]
    alike = jobs.rows.filter(fingerprint=group.fingerprint)
    assert set(alike.values_list("pk", flat=True)) == {first, last}


@on_every_database
def test_no_failures_are_no_groups(using: str) -> None:
    assert Failures(using).groups() == ErrorGroups([], False, True, 0)


@on_every_database
def test_at_most_as_many_as_are_wanted_are_shown(using: str) -> None:
    jobs = Failures(using)
    for word in ("a", "b", "b", "c", "c", "c"):
        jobs.fail(word)
    found = jobs.groups(2)
    assert shown(found) == [("c", 3, True), ("b", 2, True)]
    assert found.has_more
    assert not jobs.groups(3).has_more


@on_every_database
def test_failures_without_a_fingerprint_belong_to_none(using: str) -> None:
    jobs = Failures(using)
    jobs.fail("of old", grouped=False)
    jobs.fail("of now")
    forged = jobs.fail("by hand")
    jobs.rows.filter(pk=forged).update(fingerprint="<script>")
    found = jobs.groups()
    assert shown(found) == [("of now", 1, True)]
    assert found.ungrouped == 2


@on_every_database
def test_a_smaller_group_is_counted_to_its_beginning(using: str) -> None:
    jobs = Failures(using)
    for word in ("rare", "often", "often", "rare", "often", "rare", "often", "often"):
        jobs.fail(word)
    found = jobs.groups(most=6)
    assert shown(found) == [("often", 4, False), ("rare", 3, True)]
    assert portable.aware(found.groups[1].first) == jobs.began


@on_every_database
def test_the_newest_failures_say_which_groups_there_are(using: str) -> None:
    jobs = Failures(using)
    for word in ("old", "often", "often", "often", "rare", "often", "often", "often"):
        jobs.fail(word)
    found = jobs.groups(most=5)
    # "old" is none of the newest five, and 2 of each are counted beyond these.
    assert shown(found) == [("often", 4, False), ("rare", 1, True)]
    assert not found.is_complete
    assert portable.aware(found.groups[0].first) == jobs.began + timedelta(seconds=1)


@on_every_database
def test_they_can_be_those_of_a_queue_a_task_or_of_visible_jobs(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(error_groups, "MOST_LOOKED_UP", 2)
    jobs = Failures(using)
    mine = [jobs.fail("no"), jobs.fail("no", queue="other"), jobs.fail("no")]
    jobs.fail("no", task="shop.bill", queue="other")
    assert [each[1] for each in shown(jobs.groups())] == [3, 1]
    assert [each[1] for each in shown(jobs.groups(queue="other"))] == [1, 1]
    assert [each[1] for each in shown(jobs.groups(task="shop.send"))] == [3]
    both = {"queue": "other", "task": "shop.send"}
    assert [each[1] for each in shown(jobs.groups(**both))] == [1]
    assert jobs.groups(queue="none").groups == []
    visible = VisibleJobs(Job.objects.using(using).filter(pk__in=mine[1:]))
    found = error_groups.error_groups(using, 20, {}, visible)
    assert [each[1] for each in shown(found)] == [2]
    assert found.groups[0].job_id == mine[2]
    assert shown(jobs.groups(task="shop.send", most=2)) == [("no", 1, False)]


@on_every_database
def test_three_statements_are_enough_for_as_many_groups_as_there_are(using: str) -> None:
    jobs = Failures(using)
    for word in "abcde":
        jobs.fail(word)
    with CaptureQueriesContext(connections[using]) as captured:
        assert len(jobs.groups().groups) == 5
    statements = [each["sql"] for each in captured]
    assert len(statements) == 3, statements
    # Of a message only the beginning is read.
    assert str(MOST_READ) in statements[-1]


@on_every_database
def test_a_group_whose_jobs_are_gone_meanwhile_is_left_out(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Failures(using)
    gone, _ = jobs.fail("gone"), jobs.fail("here")
    described = error_groups._described

    def discard_first(*given: Any) -> Any:
        Job.objects.using(using).filter(pk=gone).discard()
        return described(*given)

    monkeypatch.setattr(error_groups, "_described", discard_first)
    assert shown(jobs.groups()) == [("here", 1, True)]


@pytest.mark.parametrize("using", ["default"])
@pytest.mark.django_db(transaction=True)
def test_damaged_rows_do_not_make_the_newest_all(using: str) -> None:
    jobs = Failures(using)
    for word in ("old", "often", "often"):
        damaged = jobs.fail(word)
    damage(using, damaged, "created_at", "'never'")
    found = jobs.groups(most=2)
    assert shown(found) == [("often", 2, True)]
    assert not found.is_complete


@pytest.mark.parametrize("using", ["default"])
@pytest.mark.django_db(transaction=True)
def test_a_group_whose_beginning_is_damaged_begins_later(using: str) -> None:
    jobs = Failures(using)
    damaged, last = jobs.fail("often"), jobs.fail("often")
    damage(using, damaged, "created_at", "'1'")
    found = jobs.groups(most=1)
    assert shown(found) == [("often", 1, False)]
    [group] = found.groups
    assert (group.job_id, group.first) == (last, group.last)


@pytest.mark.parametrize("using", ["default"])
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("column", "value", "left"),
    [
        ("created_at", "'never'", 2),
        ("created_at", "'2026-99-99 00:00:00'", 2),
        ("created_at", "x'ff'", 2),
        ("fingerprint", "CAST(x'ff' AS TEXT)", 2),
        ("fingerprint", "17", 2),
        ("message", "CAST(x'ff' AS TEXT)", 3),
        ("exception_class", "CAST(x'ff' AS TEXT)", 3),
        ("message", "x'ff'", 3),
    ],
)
def test_damaged_rows_hide_nothing_else(using: str, column: str, value: str, left: int) -> None:
    jobs = Failures(using)
    jobs.fail("a")
    damaged = jobs.fail("b")
    jobs.fail("c")
    damage(using, damaged, column, value)
    found = jobs.groups()
    assert len(found.groups) == left
    assert {"a", "c"} <= {each.message for each in found.groups}
