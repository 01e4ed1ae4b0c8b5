"""Inserts rows that may exist already, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model
from django.db.models.fields import AutoFieldMixin

from .prepared import fetch


def insert_if_absent(
    connection: BaseDatabaseWrapper, row: Model, unique_fields: Sequence[str]
) -> bool:
    """Insert ``row`` unless one like it exists; the transaction remains usable in both cases."""
    meta: Any = row._meta
    fields = [
        field
        for field in meta.concrete_fields
        if getattr(row, field.attname) is not None or not isinstance(field, AutoFieldMixin)
    ]
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in fields)
    values = {
        field.column: field.get_db_prep_save(field.pre_save(row, add=True), connection)
        for field in fields
    }
    places = ", ".join(f"%({field.column})s" for field in fields)
    target = ", ".join(quote(meta.get_field(name).column) for name in unique_fields)
    statement = (
        f"INSERT INTO {quote(meta.db_table)} ({columns}) VALUES ({places}) "
        f"ON CONFLICT ({target}) DO NOTHING RETURNING {quote(meta.pk.column)}"
    )
    inserted = fetch(connection, statement, values)
    if not inserted:
        return False
    row.pk = inserted[0][0]
    row._state.adding, row._state.db = False, connection.alias
    return True
