"""Which rows an outcome changes, and which of them somebody else has locked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from ...dialects import Dialect, Outcome
from ...dialects.portable.models import model
from ..base.database import QueueDatabase
from .attempt import RunResult

#: The fields that have the id of a job in models whose own key is another one.
OF_JOBS = {"BatchMember": "job_id"}


class Row(NamedTuple):
    """A row, by its model and its key: its own, or that of its job."""

    kind: str
    key: int | str


def shared_by(outcome: Outcome) -> set[Row]:
    """Return the rows that an outcome changes beside those of its job."""
    found: set[Row] = set()
    if outcome.concurrency_key is not None:
        found.add(Row("Semaphore", outcome.concurrency_key))
    if outcome.unique_key is not None and outcome.completes_job:
        found.add(Row("UniqueKey", outcome.unique_key.key))
    if outcome.link is not None and outcome.ends_member:
        found.add(Row("JobBatch", outcome.link.batch_id))
    if outcome.sequel is not None:
        limits = [each.job.limit for each in outcome.sequel.follow_ups]
        found |= {Row("Semaphore", limit.key) for limit in limits if limit is not None}
    return found


def needed_by(outcome: Outcome) -> set[Row]:
    """Return the rows that an outcome changes."""
    own = ["Job", "ClaimedExecution"]
    if outcome.concurrency_key is not None:
        own.append("Permit")
    if outcome.link is not None and outcome.ends_member:
        own.append("BatchMember")
    return {Row(kind, outcome.job_id) for kind in own} | shared_by(outcome)


def locked_for(database: QueueDatabase, results: Iterable[RunResult]) -> set[Row]:
    """Return the locked ones of the rows that these results change, as far as it is known. Raises
    ``Unavailable``."""
    if not database.dialect.info.skips_locked:
        return set()
    rows = set[Row]().union(*(needed_by(each.outcome) for each in results))
    return database.run(lambda connection, dialect: locked_among(connection, dialect, rows))


def locked_among(
    connection: BaseDatabaseWrapper, dialect: Dialect, rows: Iterable[Row]
) -> set[Row]:
    """Return those of ``rows`` that are locked, or that cannot be changed without one that is.

    Waits for none of them, and knows nothing of rows that are not committed.
    """
    keys: dict[str, set[int | str]] = {}
    for row in rows:
        keys.setdefault(row.kind, set()).add(row.key)
    outer = _outer_batches(connection, keys.get("JobBatch", set()))
    if outer:
        keys["JobBatch"] |= set(outer.values())
    with dialect.transaction(connection):
        locked = {
            Row(kind, key)
            for kind in sorted(keys)
            for key in _locked(connection, dialect, kind, keys[kind])
        }
    for inner, each in outer.items():
        if Row("JobBatch", each) in locked:
            locked.add(Row("JobBatch", inner))
    return locked


def _locked(
    connection: BaseDatabaseWrapper, dialect: Dialect, kind: str, keys: set[int | str]
) -> set[Any]:
    name = OF_JOBS.get(kind, "pk")
    rows = model(kind).objects.using(connection.alias).filter(**{f"{name}__in": keys})
    there = set(rows.values_list(name, flat=True))
    free = dialect.lock_rows(connection, rows.order_by("pk"), wait=False)
    return there - {getattr(row, name) for row in free}


def _outer_batches(connection: BaseDatabaseWrapper, batch_ids: set[int | str]) -> dict[Any, Any]:
    """Return the batches that these belong to, and so on; the innermost come last."""
    batches = model("JobBatch").objects.using(connection.alias)
    found: dict[Any, Any] = {}
    level = set(batch_ids)
    while level:
        rows = batches.filter(pk__in=level, member__isnull=False)
        outer = dict(rows.values_list("pk", "member__batch_id"))
        level = set(outer.values()) - found.keys()
        found = {**outer, **found}
    return found
