"""Permits of semaphores: which of the jobs with the same concurrency key may run.

A semaphore's value is its limit less the permits that are held, so that nobody has to count them.
What else has changed permits may have left it wrong: it is corrected where they are few, or by
``recount``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F

from .clock import storable
from .models import model, rows_of
from .own import insert_if_absent, lock_rows, present_rows, present_time, transaction
from .tokens import FIRST_TOKEN

#: Up to so many permits of a key are counted; for more of them, the semaphore's value stands.
FEW_PERMITS = 50


def admit(connection: BaseDatabaseWrapper, keys: Sequence[str]) -> int:
    """Lock the semaphores, and admit blocked jobs up to their free permits."""
    return admit_by(connection, dict.fromkeys(keys))


def admit_by(connection: BaseDatabaseWrapper, limits: Mapping[str, int | None]) -> int:
    """Admit blocked jobs up to these limits; ``None`` stands for the semaphore's own."""
    with transaction(connection):
        return sum(_admit(connection, key, limits[key]) for key in sorted(limits))


def lock_semaphores(connection: BaseDatabaseWrapper, keys: Iterable[str]) -> None:
    """Lock the semaphores of ``keys``, as every change of their permits does first."""
    rows = rows_of(connection, "Semaphore").filter(pk__in=set(keys))
    list(lock_rows(connection, rows.order_by("pk"), wait=True))


def end_permits(connection: BaseDatabaseWrapper, job_ids: Collection[int]) -> None:
    """Delete the permits of jobs, whose semaphores are locked, and give them back to these."""
    rows = rows_of(connection, "Permit").filter(pk__in=job_ids)
    ended = Counter(row.key for row in lock_rows(connection, rows, wait=True))
    if ended:
        rows._raw_delete(connection.alias)
        change_values(connection, ended)


def change_values(connection: BaseDatabaseWrapper, changes: Mapping[str, int]) -> None:
    """Add to the values of locked semaphores."""
    semaphores = rows_of(connection, "Semaphore")
    for key, change in changes.items():
        semaphores.filter(pk=key).update(value=F("value") + change)


def recount(connection: BaseDatabaseWrapper, keys: Iterable[str]) -> None:
    """Correct the values of locked semaphores, by all the permits of their keys."""
    using = connection.alias
    for key in sorted(keys):
        holders = _holders(connection, key)
        model("Semaphore").objects.using(using).filter(pk=key).update(value=F("limit") - holders)


def pass_permit(connection: BaseDatabaseWrapper, job_id: int, heir: int, token: int) -> None:
    """Give the permit of a job to its heir, if the heir's claim is still held."""
    using = connection.alias
    permits = model("Permit").objects.using(using)
    claim = model("ClaimedExecution").objects.using(using).filter(pk=heir, token=token)
    if claim.exists() and not permits.filter(pk=heir).exists():
        permits.filter(pk=job_id).update(job_id=heir)


def discard_refused(
    connection: BaseDatabaseWrapper, job_ids: Sequence[int]
) -> dict[int, str | None]:
    """Delete jobs that are blocked but must not wait; return their metadata by their ids."""
    using = connection.alias
    blocked = model("BlockedExecution").objects.using(using).filter(pk__in=job_ids)
    # A job that has run before is kept: it has waited already, and its record must not be lost.
    new = blocked.filter(token__lt=FIRST_TOKEN, job__concurrency_discards=True)
    refused = dict(new.values_list("pk", "job__metadata"))
    blocked.filter(pk__in=refused)._raw_delete(using)
    model("Job").objects.using(using).filter(pk__in=refused)._raw_delete(using)
    return refused


def _admit(connection: BaseDatabaseWrapper, key: str, limit: int | None) -> int:
    using = connection.alias
    waiting = model("BlockedExecution").objects.using(using).filter(concurrency_key=key)
    waiting = waiting.order_by("rank", "job_id")
    semaphore = _lock_or_create(connection, key, limit, waiting)
    if semaphore is None:
        return 0
    left = free_permits(connection, semaphore)
    admitted = list(lock_rows(connection, waiting[:left], wait=True)) if left > 0 else []
    if admitted:
        unblock(connection, admitted)
    semaphore.value = left - len(admitted)
    semaphore.save(using=using, update_fields=["value", "limit"])
    return len(admitted)


def _lock_or_create(
    connection: BaseDatabaseWrapper, key: str, limit: int | None, waiting: Any
) -> Any | None:
    """Return the semaphore, locked, or ``None`` if it is missing and no job waits for it."""
    using = connection.alias
    rows = lock_rows(connection, model("Semaphore").objects.using(using).filter(pk=key), wait=True)
    semaphore = rows.first()
    if semaphore is None:
        if limit is None:
            limit = waiting.values_list("job__concurrency_limit", flat=True).first()
        if limit is None:
            return None
        left = limit - _holders(connection, key)
        insert_if_absent(connection, model("Semaphore")(key=key, value=left, limit=limit), ["key"])
        semaphore = rows.get()
    if limit is not None:
        semaphore.value += limit - semaphore.limit
        semaphore.limit = limit
    return semaphore


def free_permits(connection: BaseDatabaseWrapper, semaphore: Any) -> int:
    """Return how many permits of a locked semaphore are left; less than none, if more are held than
    its limit allows."""
    permits = rows_of(connection, "Permit").filter(key=semaphore.key)
    few = present_rows(connection).number_of(permits[: FEW_PERMITS + 1])
    return int(semaphore.value if few > FEW_PERMITS else semaphore.limit - few)


def _holders(connection: BaseDatabaseWrapper, key: str) -> int:
    permits = rows_of(connection, "Permit").filter(key=key)
    return present_rows(connection).number_of(permits)


def unblock(connection: BaseDatabaseWrapper, rows: Sequence[Any]) -> None:
    """Give each of these locked blocked rows a permit, and make its job ready."""
    using = connection.alias
    present = storable(present_time(connection))
    job_ids = [row.pk for row in rows]
    permits = [model("Permit")(job_id=row.pk, key=row.concurrency_key) for row in rows]
    model("Permit").objects.using(using).bulk_create(permits)
    ready = [
        model("ReadyExecution")(
            job_id=row.pk,
            queue_name=row.queue_name,
            rank=row.rank,
            token=row.token,
            created_at=present,
        )
        for row in rows
    ]
    model("ReadyExecution").objects.using(using).bulk_create(ready)
    model("BlockedExecution").objects.using(using).filter(pk__in=job_ids)._raw_delete(using)
