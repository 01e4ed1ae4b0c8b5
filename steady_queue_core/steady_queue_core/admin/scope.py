"""The rows that a user may see: those of a page's ``get_queryset()``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db.models import Exists, OuterRef, QuerySet


@dataclass(frozen=True)
class Scope:
    """The jobs that a user may see, and the rows of the executions of these jobs."""

    jobs: QuerySet[Any]

    @cached_property
    def is_whole(self) -> bool:
        """Whether these are all jobs, so that nothing has to be asked of them."""
        return is_whole(self.jobs)

    @property
    def has(self) -> Exists:
        """What is true of a job, or of its row in a state, that may be seen."""
        return Exists(self.jobs.order_by().filter(pk=OuterRef("pk")))

    def only(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return those of ``rows`` that may be seen; their primary keys are ids of jobs."""
        return rows if self.is_whole else rows.filter(self.has)


def is_whole(rows: QuerySet[Any]) -> bool:
    """Whether a queryset has all rows of its table, as far as its SQL tells."""
    every = rows.model._default_manager.using(rows.db)
    return bool(_sql(rows) == _sql(every))


def _sql(rows: QuerySet[Any]) -> Any:
    try:
        return rows.order_by().values("pk").query.get_compiler(rows.db).as_sql()
    except EmptyResultSet:
        return None
