"""The database router that keeps the queue's tables in their own databases."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, router
from django.db.models import Model

from .configured_backends import own_backends

LABEL = "steady_queue"


class SteadyQueueRouter:
    """Routes the queue's models to the ``database`` of the default backend in ``TASKS``, or of the
    package, and allows their tables in those of all backends. Keeps other models out of these
    databases, except for the default database."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        return self._database_for(model, hints)

    def db_for_write(self, model: type[Model], **hints: Any) -> str | None:
        return self._database_for(model, hints)

    def allow_relation(self, first: Model, second: Model, **hints: Any) -> bool | None:
        ours = [each._meta.app_label == LABEL for each in (first, second)]
        if not any(ours):
            return None
        return all(ours) and first._state.db == second._state.db

    def allow_migrate(
        self, db: str, app_label: str, model_name: str | None = None, **hints: Any
    ) -> bool | None:
        databases = _databases()
        named = set(filter(None, databases))
        if not named:
            return None
        if app_label == LABEL:
            return db in named or (None in databases and db == _unnamed())
        return False if db in named and db != DEFAULT_DB_ALIAS else None

    def _database_for(self, model: type[Model], hints: dict[str, Any]) -> str | None:
        if model._meta.app_label != LABEL:
            return None
        instance = hints.get("instance")
        if instance is not None and instance._meta.app_label == LABEL and instance._state.db:
            return str(instance._state.db)
        return next(iter(_databases()), None)


def _databases() -> list[str | None]:
    """Return the databases of the backends, that of the default backend first; ``None`` for one
    that names none, and so asks the routers, and this one."""
    try:
        return [backend.settings.database for backend in own_backends().values()]
    except ImproperlyConfigured:
        return []  # The system checks report it. The project's own queries must not fail.


def _unnamed() -> str:
    """Return the database of a backend that names none."""
    return str(router.db_for_write(apps.get_model(LABEL, "Job")))
