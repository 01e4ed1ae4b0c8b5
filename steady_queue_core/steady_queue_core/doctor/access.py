"""What keeps the doctor, and the queue's processes, from the database, its tables or their rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from ..configured_backends import options_on, own_backends
from ..dialects import PROBLEM, dialect_for
from ..errors import DialectError, MigrationsMissing
from ..listings import wording
from ..models.readiness import pending_migrations, require_tables
from ..models.recorded import misfit_in
from .environment import observations
from .finding import Finding, problem
from .patient import Patient, findings_of, unreachable

CODE, HIDDEN = "table-locked", "rows-hidden"
#: What is found where rows that are there cannot be seen: those of migrations, or of a job.
UNSEEN = {"migrations-missing", "job-unknown", "job-stateless"}


def obstacles(using: str) -> list[Finding]:
    """Return the first thing without which nothing works; nothing if all is there."""
    return list(islice(_obstacles(using), 1))


def _obstacles(using: str) -> Iterator[Finding]:
    yield from _of_settings(using)
    yield from _of_dialect(using)
    try:
        _reconnect(connections[using])
        yield from _of_migrations(using)
    except (DatabaseError, InterfaceError) as error:
        yield unreachable(using, error)


def _reconnect(connection: BaseDatabaseWrapper) -> None:
    """Connect to a database, again if the server has ended the connection of this thread."""
    kept = connection.connection is not None and not connection.in_atomic_block
    if kept and not connection.is_usable():
        with suppress(DatabaseError, InterfaceError):  # Some drivers refuse to close it twice.
            connection.close()
    connection.ensure_connection()


def _of_settings(using: str) -> Iterator[Finding]:
    try:
        backends = own_backends()
        for each in backends.values():
            _ = each.settings, each.database
        options_on(using)
    except DialectError:
        return  # Told of below.
    except ImproperlyConfigured as error:
        yield problem(
            "settings-invalid",
            f"The settings cannot be used: {wording.line(error)}",
            "Correct TASKS and STEADY_QUEUE in the settings; manage.py check names each mistake.",
        )
        return
    if not backends:
        yield problem(
            "settings-invalid",
            "TASKS has no backend of Steady Queue: nothing is enqueued here.",
            "Set TASKS = {'default': {'BACKEND': 'steady_queue_core.backend.SteadyQueueBackend'}}.",
        )
    if using not in connections:
        yield problem(
            "settings-invalid",
            f"DATABASES has no {wording.name(using)!r}, where jobs are to be stored.",
            "Add it, or name another one in OPTIONS['database'] of the backend in TASKS.",
        )


def _of_dialect(using: str) -> Iterator[Finding]:
    try:
        dialect_for(using)
    except DialectError as error:
        yield problem(
            "dialect-missing",
            wording.line(error),
            "Install the dialect of this database in the environment of all processes, web "
            "processes too, and restart these.",
        )
    except ImproperlyConfigured as error:
        yield problem(
            "settings-invalid",
            f"Database {wording.name(using)!r} cannot be used: {wording.line(error)}",
            "Correct it in DATABASES, or install the driver that it needs.",
        )


def _of_migrations(using: str) -> Iterator[Finding]:
    if misfit := misfit_in(using):
        yield problem("migrations-foreign", wording.line(str(misfit)), misfit.remedy)
    option = "" if using == "default" else f" --database {using}"
    remedy = f"Run: python manage.py migrate{option}"
    if pending := pending_migrations(connections[using]):
        listed = ", ".join(pending)
        yield problem(
            "migrations-missing", f'Database "{using}" lacks migrations: {listed}.', remedy
        )
    try:
        require_tables(connections[using])
    except MigrationsMissing as error:
        yield problem("migrations-missing", wording.line(error), remedy)


def held(patient: Patient) -> list[Finding]:
    """Return who keeps others from the tables; while there is somebody, nothing is read there."""
    return [each for each in findings_of((observations,), patient) if each.code == CODE]


def ahead(patient: Patient, obstacles: list[Finding]) -> list[Finding]:
    """Return why nothing else can be examined: one of these obstacles, what lies behind it, or who
    has locked a table."""
    return (hidden(patient, obstacles) or obstacles) if obstacles else held(patient)


def hidden(patient: Patient, found: list[Finding]) -> list[Finding]:
    """Return why something was not found that may be there: its rows are hidden."""
    if not UNSEEN & {each.code for each in found}:
        return []
    seen = findings_of((observations,), patient)
    return [each for each in seen if each.code == HIDDEN and each.severity == PROBLEM]
