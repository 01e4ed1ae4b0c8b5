"""What the queue stands on: settings, clocks, tables, and what the dialect sees on its server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from django.apps import apps
from django.core.checks import ERROR, WARNING, CheckMessage, run_checks
from django.db import connections

from ..configured_backends import queue_databases
from ..dialects.observation import kept_apart
from ..listings import wording
from ..listings.wording import duration
from ..models.left_behind import has_jobs_left_behind
from .finding import Finding, problem, warning
from .patient import Patient

#: The tag of the queue's checks.
TAG = "steady_queue"
MOST_SKEW = timedelta(seconds=5)


def system_checks(patient: Patient) -> Iterator[Finding]:
    for message in run_checks(tags=[TAG], databases=[patient.using]):
        if message.is_silenced() or message.level < WARNING:
            continue
        if message.level >= ERROR:
            yield problem("check-error", _text(message), _remedy(message))
        else:
            yield warning("check-warning", _text(message), _remedy(message))


def _text(message: CheckMessage) -> str:
    return f"{wording.line(message.msg)} ({message.id})"


def _remedy(message: CheckMessage) -> str:
    return wording.line(message.hint or "See manage.py check --tag steady_queue.")


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


def databases_left_behind(patient: Patient) -> Iterator[Finding]:
    known = queue_databases()
    if patient.using != known[0]:
        return  # Told once.
    for using in connections:
        # Whatever cannot be read is nothing of the queue's.
        with suppress(Exception):
            if using not in known and _is_left_behind(using):
                yield problem(
                    "database-unserved",
                    f'Jobs wait in the database "{wording.name(using)}", which no backend in TASKS '
                    "stores jobs in: nobody runs them.",
                    f"Add a backend with OPTIONS['database'] = {using!r} to TASKS until they have "
                    "run, or discard them.",
                )


def _is_left_behind(using: str) -> bool:
    with kept_apart(connections[using]):
        return has_jobs_left_behind(using)


def host_time() -> datetime:
    """Return the time of this host."""
    return datetime.now(UTC)


def skew(patient: Patient) -> Iterator[Finding]:
    before = host_time()
    present = patient.database.current_time()
    yield from compared(before, present, host_time())


def compared(before: datetime, present: datetime, after: datetime) -> Iterator[Finding]:
    """Yield that the database's time is not between two of this host."""
    ahead = max(present - after, timedelta(0)) - max(before - present, timedelta(0))
    if abs(ahead) > MOST_SKEW:
        direction = "ahead of" if ahead > timedelta(0) else "behind"
        yield warning(
            "clock-skew",
            f"The database's clock is {duration(abs(ahead))} {direction} the one of this host. "
            "Jobs are due by the database's clock.",
            "Synchronise both with NTP. Give run_after as a timedelta to use one clock only.",
        )


def observations(patient: Patient) -> Iterator[Finding]:
    database = patient.database
    for code, text, remedy, severity in database.dialect.examine(database.connection):
        # Names of users, tables and programs on the server may be anything.
        yield Finding(wording.line(code), severity, wording.line(text), wording.line(remedy))
