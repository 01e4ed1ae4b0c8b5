"""Inserting rows that may exist already, under the one write lock."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from steady_queue_core.dialects import portable

from .transactions import transaction


def insert_if_absent(
    connection: BaseDatabaseWrapper, row: Model, unique_fields: Sequence[str]
) -> bool:
    with transaction(connection):
        return portable.insert_if_absent(connection, row, unique_fields)


def upsert(
    connection: BaseDatabaseWrapper,
    rows: Sequence[Model],
    unique_fields: Sequence[str],
    update_fields: Sequence[str],
) -> None:
    with transaction(connection):
        portable.upsert(connection, rows, unique_fields, update_fields)
