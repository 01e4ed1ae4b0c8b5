"""Indexes that the migrations have made and somebody has dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db import connections

from .finding import Finding, problem
from .patient import Patient


def missing_indexes(patient: Patient) -> Iterator[Finding]:
    connection = connections[patient.using]
    for model in apps.get_app_config("steady_queue").get_models():
        table = model._meta.db_table
        with connection.cursor() as cursor:
            found = connection.introspection.get_constraints(cursor, table)
        present = [tuple(each["columns"] or ()) for each in found.values() if _is_index(each)]
        for name, columns in _wanted(model):
            # One that begins with the same columns serves as well.
            if not any(each[: len(columns)] == columns for each in present):
                yield problem(
                    "index-missing",
                    f"Table {table} lacks the index {name} on ({', '.join(columns)}): each poll "
                    "reads the whole table.",
                    f"Create it: CREATE INDEX {name} ON {table} ({', '.join(columns)})",
                )


def _is_index(constraint: Any) -> bool:
    return bool(constraint["index"] or constraint["unique"] or constraint["primary_key"])


def _wanted(model: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    for index in model._meta.indexes:
        fields = [field.lstrip("-") for field in index.fields]
        yield index.name, tuple(model._meta.get_field(each).column for each in fields)
    for constraint in model._meta.total_unique_constraints:
        fields = constraint.fields
        yield constraint.name, tuple(model._meta.get_field(each).column for each in fields)


EXAMINATIONS = (missing_indexes,)
