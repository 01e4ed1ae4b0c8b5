"""A database that the package ``steady-queue`` was migrated in: the same label, other tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.apps.registry import Apps
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connections, models
from django.db.migrations.recorder import MigrationRecorder

from steady_queue_core.checks import check_recorded_migrations
from steady_queue_core.doctor import examine
from steady_queue_core.models.readiness import pending_migrations
from steady_queue_core.models.recorded import misfit_in

from ..command_line.invoking import invoke
from ..models.recurrence import tasks
from .fresh import fresh_alias

#: What 0.3.0 makes in its only migration, 0001_initial.
THEIRS = sorted(
    [
        *(f"steady_queue_{each}" for each in ("job", "pause", "process", "recurringtask")),
        *(f"steady_queue_{each}execution" for each in ("blocked", "claimed", "failed", "ready")),
        *(f"steady_queue_{each}" for each in ("recurringexecution", "scheduledexecution")),
        "steady_queue_semaphore",
    ]
)
COMMAND = "steady_queue take-over"
on_each_kind = pytest.mark.parametrize(
    "kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.server("postgres"))]
)


def model_of(table: str) -> type[models.Model]:
    meta = type("Meta", (), {"app_label": "another", "db_table": table, "apps": Apps()})
    return type("Row", (models.Model,), {"__module__": __name__, "Meta": meta})


@contextmanager
def after_the_swap(kind: str, folder: Path, settings: Any) -> Iterator[str]:
    """Yield an alias of a database as ``steady-queue`` 0.3.0 leaves it."""
    with fresh_alias(kind, folder) as alias:
        settings.COMMANDS = tasks(alias)
        make(alias)
        yield alias


def make(alias: str) -> None:
    with connections[alias].schema_editor() as editor:
        for table in THEIRS:
            editor.create_model(model_of(table))
    recorder = MigrationRecorder(connections[alias])
    recorder.ensure_schema()
    recorder.record_applied("steady_queue", "0001_initial")


def drop(alias: str) -> None:
    """What ``migrate steady_queue zero`` of the other package does."""
    with connections[alias].schema_editor() as editor:
        for table in THEIRS:
            editor.delete_model(model_of(table))
    MigrationRecorder(connections[alias]).record_unapplied("steady_queue", "0001_initial")


def tables(alias: str) -> set[str]:
    return set(connections[alias].introspection.table_names())


def recorded(alias: str) -> list[str]:
    applied = MigrationRecorder(connections[alias]).applied_migrations()
    return sorted(name for app, name in applied if app == "steady_queue")


def migrate(alias: str) -> None:
    """Migrate as ``manage.py`` does: by the checks of this database."""
    call_command("migrate", "steady_queue", database=alias, verbosity=0, skip_checks=False)


@on_each_kind
def test_it_is_recognised_before_migrate_changes_anything(
    kind: str, tmp_path: Path, settings: Any, django_db_blocker: Any
) -> None:
    with django_db_blocker.unblock(), after_the_swap(kind, tmp_path, settings) as alias:
        before = tables(alias)
        with pytest.raises(SystemCheckError, match=rf"steady_queue\.E012(.|\n)*{COMMAND}"):
            migrate(alias)
        with pytest.raises(SystemCheckError, match=r"steady_queue\.E012"):
            call_command("check", databases=[alias])
        assert (tables(alias), recorded(alias)) == (before, ["0001_initial"])
        [finding] = examine(alias)
        assert finding.code == "migrations-foreign"
        assert COMMAND in finding.remedy
        [error] = check_recorded_migrations(None, databases=[alias])
        assert error.msg == (
            f"django_migrations in the database {alias!r} has rows of the app 'steady_queue' "
            "(0001_initial), but no table of Steady Queue exists there: they are those of another "
            "package with this label, such as steady-queue, whose tables are there, and "
            "migrate would fail."
        )


@on_each_kind
def test_one_command_lets_migrate_work_and_keeps_what_was_there(
    kind: str, tmp_path: Path, settings: Any, django_db_blocker: Any
) -> None:
    with django_db_blocker.unblock(), after_the_swap(kind, tmp_path, settings) as alias:
        told = invoke("take-over", "--dry-run")
        assert told.lines == [
            f"Database {alias}: would be recorded no more: 0001_initial",
            f"Left as they are: {', '.join(THEIRS)}",
            f"Then run: python manage.py migrate --database {alias}",
        ]
        assert recorded(alias) == ["0001_initial"]
        assert invoke("take-over", "--json").json["databases"] == [
            {
                "database": alias,
                "recorded": ["0001_initial"],
                "has_tables": False,
                "left": THEIRS,
            }
        ]
        assert invoke("take-over").lines == ["There is nothing to take over."]
        migrate(alias)
        assert not pending_migrations(connections[alias])
        assert set(THEIRS) <= tables(alias)
        assert check_recorded_migrations(None, databases=[alias]) == []


def test_it_helps_after_migrate_has_failed_and_the_other_package_was_migrated_back(
    tmp_path: Path, settings: Any, django_db_blocker: Any
) -> None:
    with django_db_blocker.unblock(), after_the_swap("sqlite", tmp_path, settings) as alias:
        # As without this check: what makes no table is recorded, and then there is no table.
        MigrationRecorder(connections[alias]).record_applied(
            "steady_queue", "0002_cancel_permission"
        )
        drop(alias)
        assert recorded(alias) == ["0002_cancel_permission"]
        assert misfit_in(alias) is not None
        invoke("take-over")
        migrate(alias)
        assert not pending_migrations(connections[alias])


def test_it_helps_after_the_other_package_was_migrated_back_beside_our_tables(
    tmp_path: Path, settings: Any, django_db_blocker: Any
) -> None:
    with django_db_blocker.unblock(), after_the_swap("sqlite", tmp_path, settings) as alias:
        invoke("take-over")
        migrate(alias)
        drop(alias)
        [error] = check_recorded_migrations(None, databases=[alias])
        assert "0001_initial of the app 'steady_queue' is not recorded" in error.msg
        assert invoke("take-over").lines[0] == f"Database {alias}: now recorded: 0001_initial"
        migrate(alias)
        assert not pending_migrations(connections[alias])


class NotHere:
    """A router that keeps the queue out of a database."""

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return False if app_label == "steady_queue" else None


def test_a_database_that_is_to_have_no_tables_is_left_alone(
    tmp_path: Path, settings: Any, django_db_blocker: Any
) -> None:
    with django_db_blocker.unblock(), after_the_swap("sqlite", tmp_path, settings) as alias:
        settings.DATABASE_ROUTERS = [NotHere()]
        assert misfit_in(alias) is None
        assert invoke("take-over").lines == ["There is nothing to take over."]
        assert recorded(alias) == ["0001_initial"]
