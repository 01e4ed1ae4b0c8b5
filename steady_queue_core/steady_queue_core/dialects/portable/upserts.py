"""Rows that may be there already, and semaphores."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Model
from django.db.transaction import atomic

from .clock import current_time, now, storable
from .locking import lock_rows
from .models import model


def insert_if_absent(
    connection: BaseDatabaseWrapper, row: Model, unique_fields: Sequence[str]
) -> bool:
    """Insert behind a savepoint; a duplicate rolls back to it."""
    using = connection.alias
    try:
        with atomic(using=using):
            row.save(using=using, force_insert=True)
    except IntegrityError:
        wanted = {field: getattr(row, field) for field in unique_fields}
        present = type(row)._default_manager.using(using).filter(**wanted)
        if connection.in_atomic_block:
            # Locked, so that a row is seen even if it is newer than this transaction's snapshot.
            present = lock_rows(connection, present, wait=True)
        if present.first() is None:
            raise
        return False
    return True


def upsert(
    connection: BaseDatabaseWrapper,
    rows: Sequence[Model],
    unique_fields: Sequence[str],
    update_fields: Sequence[str],
) -> None:
    """Insert all rows in one statement that updates those already there."""
    if not rows:
        return
    targeted = connection.features.supports_update_conflicts_with_target
    type(rows[0])._default_manager.using(connection.alias).bulk_create(
        rows,
        update_conflicts=True,
        update_fields=list(update_fields),
        unique_fields=list(unique_fields) if targeted else None,
    )


def take_permit(connection: BaseDatabaseWrapper, key: str, limit: int, duration: timedelta) -> bool:
    """Take from the row if it is there; insert it with one permit taken if it is not."""
    if limit <= 0:
        return False
    using = connection.alias
    semaphores = model("Semaphore").objects.using(using)
    with atomic(using=using, savepoint=False):
        expires_at = storable(current_time(connection, now(connection)) + duration)
        for _ in range(2):
            # The row counts by the limit it was written with: this one may be another.
            left = semaphores.filter(pk=key, value__gt=F("limit") - limit)
            value = F("value") - F("limit") + (limit - 1)
            if left.update(value=value, limit=limit, expires_at=expires_at):
                return True
            row = model("Semaphore")(key=key, value=limit - 1, limit=limit, expires_at=expires_at)
            if insert_if_absent(connection, row, ["key"]):
                return True
            # Somebody else has inserted it meanwhile: its permits count now.
    return False


def give_permit(connection: BaseDatabaseWrapper, key: str, limit: int) -> bool:
    """Give back one permit unless all are back already."""
    semaphores = model("Semaphore").objects.using(connection.alias)
    taken = semaphores.filter(pk=key, value__lt=F("limit"))
    # A smaller limit is taken over once no more permits than that are out.
    fitting = taken.filter(value__gte=F("limit") - (limit + 1))
    if fitting.update(value=F("value") - F("limit") + (limit + 1), limit=limit):
        return True
    return bool(taken.update(value=F("value") + 1))
