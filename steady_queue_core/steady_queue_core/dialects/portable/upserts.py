"""Inserting rows that may exist already."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model
from django.db.transaction import atomic

from .own import lock_rows


def insert_if_absent(
    connection: BaseDatabaseWrapper, row: Model, unique_fields: Sequence[str]
) -> bool:
    """Insert after a savepoint; a duplicate rolls back to it."""
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
    """Insert all rows in one statement that updates existing ones."""
    if not rows:
        return
    targeted = connection.features.supports_update_conflicts_with_target
    type(rows[0])._default_manager.using(connection.alias).bulk_create(
        rows,
        update_conflicts=True,
        update_fields=list(update_fields),
        unique_fields=list(unique_fields) if targeted else None,
    )
