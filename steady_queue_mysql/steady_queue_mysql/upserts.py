"""Inserting rows that may exist already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from steady_queue_core.dialects import portable

from .errors import DUPLICATE, error_number, translated_errors
from .transactions import Transaction, run_in_transaction, transaction


def insert_if_absent(
    connection: BaseDatabaseWrapper, row: Model, unique_fields: Sequence[str]
) -> bool:
    """Insert, and recognise a duplicate by its error: a failed INSERT undoes only itself.

    INSERT IGNORE would ignore other errors too, and the row count of an upsert does not tell
    whether the row was there.
    """

    def work(transaction: Transaction) -> bool:
        try:
            _insert(connection, row)
        except IntegrityError as error:
            if error_number(error) != DUPLICATE or not _exists(connection, row, unique_fields):
                raise
            return False
        return True

    return run_in_transaction(connection, work)


def upsert(
    connection: BaseDatabaseWrapper,
    rows: Sequence[Model],
    unique_fields: Sequence[str],
    update_fields: Sequence[str],
) -> None:
    """Insert all rows in one statement that updates existing ones."""

    def work(_: Transaction) -> None:
        with transaction(connection):
            portable.upsert(connection, rows, unique_fields, update_fields)

    run_in_transaction(connection, work)


def _insert(connection: BaseDatabaseWrapper, row: Any) -> None:
    fields = [
        field for field in row._meta.concrete_fields
        if not field.primary_key or row.pk is not None
    ]  # fmt: skip
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in fields)
    marks = ", ".join(["%s"] * len(fields))
    values = [field.get_db_prep_save(field.pre_save(row, add=True), connection) for field in fields]
    sql = f"INSERT INTO {quote(row._meta.db_table)} ({columns}) VALUES ({marks})"
    with translated_errors(connection), connection.cursor() as cursor:
        cursor.execute(sql, values)
        if row.pk is None:
            row.pk = cursor.lastrowid
    row._state.adding, row._state.db = False, connection.alias


def _exists(connection: BaseDatabaseWrapper, row: Any, unique_fields: Sequence[str]) -> bool:
    wanted = {name: getattr(row, name) for name in unique_fields}
    found = type(row)._default_manager.using(connection.alias).filter(**wanted)
    if connection.in_atomic_block:
        # Locked, so that a row is seen even if it is newer than this transaction's snapshot.
        found = found.select_for_update()
    return found.first() is not None
