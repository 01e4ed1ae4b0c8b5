"""What the newest failures have in common, and when they were."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connections

from ..dialects import portable, tables
from ..fingerprint import first_line, is_fingerprint
from ..listings.counts import BoundedCount
from ..listings.damage import suppress_damage
from ..listings.error_groups import ErrorGroup, error_groups
from ..listings.statement import rows_of, stored_instants
from ..models import FailedExecution
from .scope import Scope

#: Failures that are looked at, groups that are shown, and characters of a message.
LOOKED_AT, MOST, MOST_READ = 500, 5, 300

WITH_CAUSE = f"""
SELECT part.job_id, fingerprint, part.created_at, exception_class,
    SUBSTR(message, 1, {MOST_READ}), task_path, queue_name
FROM {{rows}}
JOIN {tables.FAILED} failed ON failed.job_id = part.job_id
JOIN {tables.JOBS} job ON job.id = part.job_id"""


class Failure(NamedTuple):
    """One of the newest failures."""

    job_id: int
    fingerprint: str
    failed_at: datetime
    exception_class: str
    message: str
    task: str
    queue: str


@dataclass(frozen=True)
class Cause:
    """An error group, and when its jobs have failed; none if that is not known."""

    group: ErrorGroup
    failed_at: Sequence[datetime] = ()


@dataclass(frozen=True)
class Causes:
    """The largest groups of the newest failures."""

    shown: Sequence[Cause]
    #: Whether there are more groups.
    has_more: bool
    #: When the oldest of the failures was that were looked at; ``None`` if these are all.
    since: datetime | None
    #: The tasks and queues that have failed jobs, among those that were looked at.
    tasks: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()


def causes(scope: Scope) -> Causes:
    """Return what has failed lately in a scope: one query, unless a row is damaged."""
    with suppress_damage():
        return _grouped(scope, *_newest(scope))
    return _one_by_one(scope)


def _grouped(scope: Scope, found: Sequence[Failure], is_complete: bool) -> Causes:
    alike: dict[str, list[Failure]] = defaultdict(list)
    for each in found:
        if is_fingerprint(str(each.fingerprint)) and scope.has(each.queue, each.task):
            alike[each.fingerprint].append(each)
    # Those that have failed last come first among groups of one size.
    largest = sorted(alike.values(), key=lambda each: -len(each))
    since = None if is_complete else found[-1].failed_at
    shown = [_cause(each, is_exact=is_complete) for each in largest[:MOST]]
    tasks, queues = frozenset(each.task for each in found), frozenset(each.queue for each in found)
    return Causes(shown, len(largest) > MOST, since, tasks, queues)


def _newest(scope: Scope) -> tuple[list[Failure], bool]:
    rows = FailedExecution.objects.using(scope.using).order_by("-created_at", "-job_id")
    # Two columns of one index: MySQL reads and sorts the whole table for more.
    newest = rows.values("job_id", "created_at")[: LOOKED_AT + 1]
    found = list(_read(scope.using, rows_of(scope.using, [(WITH_CAUSE, newest)])))
    found.sort(key=lambda each: (each.failed_at, each.job_id), reverse=True)
    return found[:LOOKED_AT], len(found) <= LOOKED_AT


def _read(using: str, rows: Iterable[tuple[Any, ...]]) -> Iterator[Failure]:
    read = stored_instants(connections[using])
    for job_id, fingerprint, failed_at, *others in rows:
        instant = read(failed_at)
        # SQLite's rows may hold what is no time, after a manual edit.
        if instant is not None:
            yield Failure(job_id, fingerprint, portable.aware(instant), *others)


def _cause(alike: Sequence[Failure], *, is_exact: bool) -> Cause:
    last, first = alike[0], alike[-1]
    group = ErrorGroup(
        last.fingerprint,
        BoundedCount(len(alike), is_exact),
        first.failed_at,
        last.failed_at,
        last.job_id,
        str(last.exception_class),
        first_line(str(last.message)),
        str(last.task),
    )
    return Cause(group, [each.failed_at for each in alike])


def _one_by_one(scope: Scope) -> Causes:
    given = {"queue": scope.queue, "task": scope.task}
    given = {name: value for name, value in given.items() if value}
    found = error_groups(scope.using, MOST, given, most=LOOKED_AT)
    oldest = min((each.first for each in found.groups), default=None)
    since = None if found.is_complete else oldest
    return Causes([Cause(each) for each in found.groups], found.has_more, since)
