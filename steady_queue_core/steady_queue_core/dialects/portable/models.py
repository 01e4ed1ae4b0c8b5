"""The models, which live in a package above this one, and the rows that jobs move between."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from django.apps import apps
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from .clock import storable


@cache
def model(name: str) -> Any:
    """Return a model of Steady Queue by its class name."""
    return apps.get_model("steady_queue", name)


def rows_of(connection: BaseDatabaseWrapper, name: str) -> QuerySet[Any]:
    """Return all rows of a model in the database of ``connection``."""
    rows: QuerySet[Any] = model(name).objects.using(connection.alias)
    return rows


def moved(name: str, row: Any, token: int, present: datetime, **extra: Any) -> Any:
    """Return an unsaved execution row of model ``name`` for the job of another row."""
    return model(name)(
        job_id=row.job_id,
        queue_name=row.queue_name,
        rank=row.rank,
        token=token,
        created_at=storable(present),
        **extra,
    )
