"""Recorded migrations that are those of another package.

The app of the package ``steady-queue`` has the same label, its first migration the same name, and
its tables have others.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.apps import apps
from django.db import connections, router, transaction
from django.db.migrations.recorder import MigrationRecorder

from .job import Job
from .readiness import LABEL

#: The migration that makes the first tables.
FIRST = "0001_initial"
#: The table of jobs of the package ``steady-queue``.
OTHER_JOBS = "steady_queue_job"
TAKE_OVER = "python manage.py steady_queue take-over"


@dataclass(frozen=True)
class Misfit:
    """The recorded migrations of a database do not fit its tables; ``migrate`` would fail."""

    using: str
    #: Names of the migrations that are recorded, in order.
    recorded: tuple[str, ...]
    #: Whether the tables of the queue are there: then the first migration has to be recorded.
    has_tables: bool
    #: The tables of the package ``steady-queue``, in order.
    others: tuple[str, ...]

    def __str__(self) -> str:
        listed = ", ".join(self.recorded)
        if self.has_tables:
            return (
                f"Database {self.using!r} has the tables of Steady Queue, but {FIRST} of the app "
                f"{LABEL!r} is not recorded in django_migrations, and {listed} are: another "
                "package with this label has been migrated back there, and no app can be migrated."
            )
        whose = ", whose tables are there" if self.others else ""
        return (
            f"django_migrations in the database {self.using!r} has rows of the app {LABEL!r} "
            f"({listed}), but no table of Steady Queue exists there: they are those of another "
            f"package with this label, such as steady-queue{whose}, and migrate would fail."
        )

    @property
    def remedy(self) -> str:
        return f"Run: {TAKE_OVER}, and then migrate. It leaves all tables as they are."

    def mend(self) -> None:
        """Record what the tables say. It may be done again at any time."""
        recorder = MigrationRecorder(connections[self.using])
        with transaction.atomic(using=self.using):
            if self.has_tables:
                recorder.record_applied(LABEL, FIRST)
            else:
                recorder.migration_qs.filter(app=LABEL).delete()


def misfit_in(using: str) -> Misfit | None:
    """Return what is wrong with the recorded migrations of a database, if it is to have the tables.

    Errors of a database that cannot be read are passed on.
    """
    if not router.allow_migrate_model(using, Job):
        return None  # Django records there what it has not done.
    connection = connections[using]
    applied = MigrationRecorder(connection).applied_migrations()
    recorded = tuple(sorted(name for app, name in applied if app == LABEL))
    if not recorded:
        return None
    present = set(connection.introspection.table_names())
    has_tables = bool(present & _own_tables())
    if has_tables and FIRST in recorded:
        return None
    others = tuple(sorted(present & _other_tables())) if OTHER_JOBS in present else ()
    return Misfit(using, recorded, has_tables, others)


def _own_tables() -> set[str]:
    return {model._meta.db_table for model in apps.get_app_config(LABEL).get_models()}


def _other_tables() -> set[str]:
    kinds = "blocked claimed failed ready recurring scheduled"
    names = ["job", "pause", "process", "recurringtask", "semaphore"]
    names += [f"{kind}execution" for kind in kinds.split()]
    return {f"{LABEL}_{name}" for name in names}
