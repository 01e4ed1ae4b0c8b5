"""The jobs that a user may see: those of the job page's ``get_queryset()``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db.models import Exists, OuterRef, QuerySet


@dataclass(frozen=True)
class VisibleJobs:
    """The jobs that a user may see, and a way to restrict executions to them."""

    jobs: QuerySet[Any]

    @cached_property
    def is_unrestricted(self) -> bool:
        """Whether the user may see all jobs, so that no condition is needed."""
        return is_unrestricted(self.jobs)

    @property
    def condition(self) -> Exists:
        """The condition that a job or execution is visible."""
        return Exists(self.jobs.order_by().filter(pk=OuterRef("pk")))

    def restrict(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return the visible ones of ``rows``, whose primary keys are job ids."""
        return rows if self.is_unrestricted else rows.filter(self.condition)


def is_unrestricted(rows: QuerySet[Any]) -> bool:
    """Whether a queryset selects all rows of its table, judged by its SQL."""
    every = rows.model._default_manager.using(rows.db)
    return bool(_sql(rows) == _sql(every))


def _sql(rows: QuerySet[Any]) -> Any:
    try:
        return rows.order_by().values("pk").query.get_compiler(rows.db).as_sql()
    except EmptyResultSet:
        return None
