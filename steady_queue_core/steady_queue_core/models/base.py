"""What all models have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.db import models
from django.db.models import QuerySet

from .fields import InstantField

F = TypeVar("F", bound=Callable[..., Any])


class Record(models.Model):
    """A row of the queue with the time of its insertion, by the database's clock."""

    created_at = InstantField()

    class Meta:
        abstract = True


def unfiltered(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return all rows of the table that ``rows`` selects from, in the same database."""
    model: Any = rows.model._meta.concrete_model
    table: QuerySet[Any] = model._base_manager.using(rows.db)
    return table


def alters_data(method: F) -> F:
    """Keep templates from calling ``method``, as Django does for ``delete()``."""
    method.alters_data = True  # type: ignore[attr-defined]  # Templates look for it.
    return method
