"""Failures with the same cause, counted together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import F, QuerySet
from django.db.models.functions import Left

from ..fingerprint import MOST_READ, first_line, is_fingerprint
from ..models import FailedExecution, Job
from .counts import CAP, BoundedCount, count_each
from .damage import DAMAGED, read_each, suppress_damage
from .job_listing import COLUMNS
from .visibility import VisibleJobs

#: Jobs that one statement looks up.
MOST_LOOKED_UP = 2_500


@dataclass(frozen=True)
class ErrorGroup:
    """Failed jobs of a task with the same class of exception and, but for numbers, ids and quoted
    text, the same first line of its message."""

    fingerprint: str
    count: BoundedCount
    #: When the first and the last of them have failed.
    first: datetime
    last: datetime
    #: The last one of them, with its exception and the first line of the message.
    job_id: int
    exception_class: str
    message: str
    task_path: str

    @property
    def error(self) -> str:
        """The class of the exception, without its module, and the message."""
        return f"{self.exception_class.rpartition('.')[2]}: {self.message}"


@dataclass(frozen=True)
class ErrorGroups:
    """The groups that the newest failures of a database belong to, the largest first."""

    groups: Sequence[ErrorGroup]
    #: Whether there are more of them.
    has_more: bool
    #: Whether all failures were looked at, not the newest alone.
    is_complete: bool
    #: How many of these belong to no group: their rows say of none.
    ungrouped: int


class Failure(NamedTuple):
    """One of the newest failures."""

    job_id: int
    fingerprint: str | None
    failed_at: datetime


def error_groups(
    using: str,
    limit: int,
    given: Mapping[str, str],
    visible: VisibleJobs | None = None,
    most: int | None = None,
) -> ErrorGroups:
    """Return at most ``limit`` groups of the failed jobs in a database.

    Looks at the newest failures, 10,000 or ``most``, and at as many others for the numbers of the
    groups and their beginnings: a count is exact, or a lower bound. ``visible`` are the jobs that
    count, by default all, and of these only those of the ``given`` queue and task. What is older
    than the newest failures does not count then.
    """
    visible, most = visible or VisibleJobs(Job.objects.using(using)), most or CAP
    newest, is_complete = _newest(using, most)
    is_narrowed = bool(given) or not visible.is_unrestricted
    if is_narrowed:
        same = {COLUMNS[parameter]: value for parameter, value in given.items()}
        newest = list(_matching(newest, visible.jobs.filter(**same)))
    found = _by_fingerprint(newest)
    ungrouped = len(newest) - sum(map(len, found.values()))
    # Those that have failed last come first among groups of one size.
    largest = sorted(found, key=lambda each: -len(found[each]))
    shown = {each: found[each] for each in largest[:limit]}
    counts = [BoundedCount(len(each), is_complete, each[-1].failed_at) for each in shown.values()]
    if not (is_complete or is_narrowed):
        counts = _counted(using, shown, most)
    groups = _described(using, shown, counts)
    return ErrorGroups(groups, len(found) > limit, is_complete, ungrouped)


def _newest(using: str, most: int) -> tuple[list[Failure], bool]:
    """Return the newest failures, and whether these are all."""
    rows = FailedExecution.objects.using(using).order_by("-created_at", "-job_id")
    with suppress_damage():
        return _latest(rows, most)
    keys = list(rows.values_list("pk", flat=True)[: most + 1])
    return list(_undamaged(rows, keys[:most])), len(keys) <= most


def _latest(rows: QuerySet[Any], most: int) -> tuple[list[Failure], bool]:
    # MySQL reads the whole table for the first 10,000 rows of an index that lacks a column, but not
    # for a range with so many.
    next_ones = list(rows.values_list("created_at", flat=True)[most : most + 1])
    if next_ones:
        rows = rows.filter(created_at__gte=next_ones[0])
    latest = rows.values_list("pk", "fingerprint", "created_at")[:most]
    return [Failure(*row) for row in latest], not next_ones


def _undamaged(rows: QuerySet[Any], keys: Sequence[int]) -> Iterator[Failure]:
    small = rows.only("fingerprint", "created_at")
    for start in range(0, len(keys), MOST_LOOKED_UP):
        part = keys[start : start + MOST_LOOKED_UP]
        found = read_each(small, part)
        for row in filter(None, map(found.get, part)):
            yield Failure(row.pk, row.fingerprint, row.created_at)


def _matching(failures: Sequence[Failure], jobs: QuerySet[Any]) -> Iterator[Failure]:
    for start in range(0, len(failures), MOST_LOOKED_UP):
        part = failures[start : start + MOST_LOOKED_UP]
        ids = [each.job_id for each in part]
        matching = set(jobs.order_by().filter(pk__in=ids).values_list("pk", flat=True))
        yield from (each for each in part if each.job_id in matching)


def _by_fingerprint(failures: Sequence[Failure]) -> dict[str, list[Failure]]:
    found: dict[Any, list[Failure]] = defaultdict(list)
    for each in failures:
        # SQLite's rows may hold what is no time, after a manual edit.
        if isinstance(each.failed_at, datetime):
            found[each.fingerprint].append(each)
    return {
        fingerprint: failures
        for fingerprint, failures in found.items()
        if isinstance(fingerprint, str) and is_fingerprint(fingerprint)
    }


def _counted(using: str, shown: dict[str, list[Failure]], most: int) -> list[BoundedCount]:
    """Count groups that may have older jobs, too, by reading ``most`` rows of all of them."""
    rows = FailedExecution.objects.using(using).order_by("fingerprint", "created_at")
    # Not by equality: PostgreSQL would look for them in the order of time, among all others.
    of_each = [rows.filter(fingerprint__gte=each, fingerprint__lte=each) for each in shown]
    cap = max(1, most // max(1, len(shown)))
    counts = count_each(using, of_each, "created_at", cap=cap)
    return [
        count._replace(number=max(count.number, len(failures)))
        for count, failures in zip(counts, shown.values(), strict=True)
    ]


def _described(
    using: str, shown: dict[str, list[Failure]], counts: Sequence[BoundedCount]
) -> list[ErrorGroup]:
    rows = FailedExecution.objects.using(using).select_related("job")
    rows = rows.annotate(start=Left(F("message"), MOST_READ))
    rows = rows.only("exception_class", "job__task_path")
    examples = read_each(rows, [failures[0].job_id for failures in shown.values()])
    groups = []
    for (fingerprint, failures), count in zip(shown.items(), counts, strict=True):
        last = failures[0]
        if last.job_id not in examples:
            continue  # It was retried or discarded meanwhile.
        row = examples[last.job_id]
        groups.append(
            ErrorGroup(
                fingerprint,
                count,
                count.first or failures[-1].failed_at,
                last.failed_at,
                last.job_id,
                DAMAGED if row is None else str(row.exception_class),
                "" if row is None else first_line(str(row.start)),
                DAMAGED if row is None else str(row.job.task_path),
            )
        )
    return groups
