"""Whether a database is ready for the queue."""

from __future__ import annotations

from django.apps import apps
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

from ..errors import MigrationsMissing

LABEL = "steady_queue"


def pending_migrations(connection: BaseDatabaseWrapper) -> list[str]:
    """Return the names of the queue's migrations that were not applied to a database, in order."""
    executor = MigrationExecutor(connection)
    targets = [key for key in executor.loader.graph.leaf_nodes() if key[0] == LABEL]
    plan = executor.migration_plan(targets)
    return [each.name for each, _ in plan if each.app_label == LABEL]


def require_tables(connection: BaseDatabaseWrapper) -> None:
    """Raise ``MigrationsMissing`` unless all tables of the queue exist."""
    wanted = {model._meta.db_table for model in apps.get_app_config(LABEL).get_models()}
    missing = wanted - set(connection.introspection.table_names())
    if missing:
        option = "" if connection.alias == "default" else f" --database {connection.alias}"
        raise MigrationsMissing(
            f"Database {connection.alias!r} lacks the tables of Steady Queue "
            f"({', '.join(sorted(missing)[:2])}, ...). Run: manage.py migrate{option} "
            "(or, if they exist, grant the database user access to them)"
        )
