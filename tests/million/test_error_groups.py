"""Groups of failures are found without reading them all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.db import connections

from steady_queue_core.dialects import tables
from steady_queue_core.listings.counts import CAP
from steady_queue_core.listings.error_groups import ErrorGroups, error_groups
from steady_queue_core.listings.job_listing import JobListing
from steady_queue_core.listings.states import FAILED
from steady_queue_core.listings.visibility import VisibleJobs
from steady_queue_core.models import Job

from .building import Builder, Shape, analyze
from .conftest import Databases, Histories
from .costs import Meter
from .test_costs import on_every_kind

pytestmark = [pytest.mark.timeout(600)]

#: So many failures of which each group has one in so many. The last ones belong to two groups.
FAILURES, GROUPS, LAST = 300_000, 25, 20_000
#: SQLite tells how many rows it has read to a few per cent, MySQL reads some of them twice.
MUCH = 1.3


@pytest.fixture
def using(histories: Histories, _databases: Databases, kind: str) -> Iterator[str]:
    """A database with hardly anything but failures."""
    with ExitStack() as stack:
        using = histories.alias(kind, 1_000, analyzed=True)
        connection = connections[using]
        builder = Builder(connection, Shape.of(1_000))
        builder.execute(f"DELETE FROM {tables.FAILED}")
        number = f"CASE WHEN i > {FAILURES - LAST} THEN i % 2 ELSE i % {GROUPS} END"
        builder.insert(
            tables.FAILED,
            FAILURES,
            job_id="i",
            created_at=builder.ago(f"({FAILURES} - i) / 10.0 + 1"),
            exception_class="'builtins.ValueError'",
            message="'no order 17'",
            fingerprint=builder.text("'00000000000000'", f"10 + {number}"),
        )
        analyze(connection)
        stack.callback(builder.execute, f"DELETE FROM {tables.FAILED}")
        yield using


def rows_read(using: str, read: Any) -> tuple[int, Any]:
    with Meter(using, counts_all=True).undone() as meter:
        found = read()
    return meter.rows, found


@on_every_kind
@pytest.mark.django_db
def test_no_more_failures_are_read_than_are_looked_at(using: str) -> None:
    read, found = rows_read(using, lambda: error_groups(using, 20, {}))
    assert isinstance(found, ErrorGroups)
    assert not found.is_complete
    # As many for the end of the newest, for these themselves, and for the numbers of the groups.
    assert read <= MUCH * (2 + 2) * CAP
    few, _ = rows_read(using, lambda: error_groups(using, 20, {}, most=1_000))
    assert few <= read / 5
    # The jobs of the failures are looked up, among a thousand.
    by_task, _ = rows_read(using, lambda: error_groups(using, 20, {"task": "t"}))
    assert by_task <= MUCH * (2 + 3) * CAP


@on_every_kind
@pytest.mark.django_db
def test_the_jobs_of_a_group_are_listed_and_counted_without_the_others(using: str) -> None:
    listing = JobListing(VisibleJobs(Job.objects.using(using)), FAILED, {"error": f"{12:016}"})
    read, count = rows_read(using, listing.count)
    assert count.number == CAP
    assert read <= MUCH * 2 * CAP
    read, _ = rows_read(using, lambda: next(listing.batches()))
    assert read <= MUCH * (FAILURES - LAST) / GROUPS
    # None of the group is among the last ones.
    read, page = rows_read(using, lambda: listing.page("", 50))
    assert page.following is not None
    second, _ = rows_read(using, lambda: listing.page(str(page.following), 50))
    assert read <= MUCH * 2 * 51
    # From there on, others may lie between them.
    assert second <= MUCH * 51 * GROUPS
