"""Migrations keep the rule of docs/upgrading.md: older processes can go on while they run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import pytest
from django.db import models
from django.db.migrations import Migration
from django.db.migrations.operations import (
    AddConstraint,
    AddField,
    AddIndex,
    AlterField,
    AlterModelOptions,
    CreateModel,
    RemoveField,
    RemoveIndex,
    RenameField,
    RunPython,
    RunSQL,
)
from django.db.migrations.operations.base import Operation

from steady_queue_core import migrations

from ..older_code import FIRST_UNRELEASED

#: Operations that break the rule, by migration; docs/upgrading.md says what follows.
EXCEPTIONS = {"0011_turns": {"RunPython", "RemoveIndex readyexecution"}}


def breaches(operations: Sequence[Operation], tables: set[str]) -> Iterator[str]:
    """Yield the operations that older processes may not bear; ``tables``: those that only newer
    ones use, to which the new ones are added."""
    for operation in operations:
        model = str(getattr(operation, "model_name", "")).lower()
        match operation:
            case CreateModel(name=name):
                tables.add(name.lower())
            case AlterModelOptions() | AddIndex():
                pass
            case _ if model in tables:
                pass
            case AddField(field=field) if can_be_left_out(field):
                pass
            case _:
                yield f"{type(operation).__name__} {model}".strip()


def can_be_left_out(field: models.Field) -> bool:
    """Say whether rows can be inserted without it. Django removes a ``default`` from the table."""
    return (field.null or field.has_db_default()) and not field.unique


def unreleased() -> Iterator[tuple[str, Migration]]:
    for path in sorted(Path(migrations.__path__[0]).glob("[0-9]*.py")):
        if path.stem >= FIRST_UNRELEASED:
            module = import_module(f"{migrations.__name__}.{path.stem}")
            yield path.stem, module.Migration(path.stem, "steady_queue")


def test_older_processes_can_go_on_during_each_migration_that_is_not_released() -> None:
    tables: set[str] = set()
    found = {name: set(breaches(migration.operations, tables)) for name, migration in unreleased()}
    assert "readyexecution" not in tables
    assert {name: each for name, each in found.items() if each} == EXCEPTIONS


UNIQUE = models.UniqueConstraint(fields=["queue_name"], name="steady_queue_one_each")


@pytest.mark.parametrize(
    "operation",
    [
        AddField("job", "colour", models.IntegerField(default=0)),
        AddField("job", "colour", models.IntegerField(null=True, unique=True)),
        AddConstraint("job", UNIQUE),
        AlterField("job", "queue_name", models.CharField(max_length=8)),
        RemoveField("job", "queue_name"),
        RemoveIndex("job", "steady_queue_jobs_finished"),
        RenameField("job", "queue_name", "queue"),
        RunPython(RunPython.noop),
        RunSQL("DELETE FROM steady_queue_jobs"),
    ],
    ids=lambda operation: type(operation).__name__,
)
def test_what_older_processes_may_not_bear_is_found(operation: Operation) -> None:
    assert list(breaches([operation], {"batch"})) != []


@pytest.mark.parametrize(
    "operation",
    [
        AddField("job", "colour", models.IntegerField(null=True)),
        AddField("job", "colour", models.IntegerField(default=0, db_default=0)),
        AddField("batch", "colour", models.IntegerField()),
        AddIndex("job", models.Index(fields=["queue_name"], name="steady_queue_jobs_queue")),
    ],
    ids=["null", "db_default", "new table", "index"],
)
def test_what_they_do_not_notice_is_let_pass(operation: Operation) -> None:
    assert list(breaches([operation], {"batch"})) == []
