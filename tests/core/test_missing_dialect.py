"""A database of the queue that no dialect serves: what is stopped by it, and what goes on."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError
from django.core.management.sql import emit_pre_migrate_signal
from django.db import connections
from django.db.migrations import Migration

from steady_queue_core.dialects.registry import override
from steady_queue_core.errors import DialectNotFound
from tests.app.tasks import add

from ..conformance.plugins import registry_of

MESSAGE = (
    "No Steady Queue dialect supports database 'default' (vendor 'sqlite'). Installed dialects: "
    "none. Install it with: pip install steady-queue-sqlite"
)


@pytest.fixture(autouse=True)
def _no_dialect() -> Iterator[None]:
    with override(registry_of()):
        yield


def told(*command: str, **options: Any) -> str:
    """Return what a command has written to the standard error."""
    errors = StringIO()
    if command[0] != "check":
        options["skip_checks"] = False
    call_command(*command, stdout=StringIO(), stderr=errors, **options)
    return errors.getvalue()


def migrate(*app_labels: str, backwards: bool = False, using: str = "default") -> None:
    """Send what Django sends before it carries out a plan with migrations of these apps."""
    plan = [(Migration("0001_some", label), backwards) for label in app_labels]
    emit_pre_migrate_signal(0, False, using, stdout=StringIO(), apps=apps, plan=plan)


@pytest.mark.django_db(databases="__all__")
def test_other_commands_go_on_with_a_warning() -> None:
    for command in (["check"], ["check", "--tag", "steady_queue"], ["sqlflush"]):
        warned = told(*command)
        assert f"(steady_queue.W023) {MESSAGE}" in warned, command
        assert "E001" not in warned


@pytest.mark.django_db(databases="__all__")
def test_other_apps_are_migrated() -> None:
    assert f"(steady_queue.W023) {MESSAGE}" in told("migrate", "auth", verbosity=0)
    migrate("auth", "admin")
    migrate("steady_queue", backwards=True)


def test_the_tables_of_the_queue_are_not_made_without_it() -> None:
    with pytest.raises(CommandError) as refused:
        migrate("auth", "steady_queue")
    assert str(refused.value) == (
        f"The tables of the queue cannot be migrated. {MESSAGE} Nothing was migrated; other apps "
        "can be until then: manage.py migrate APP."
    )


def test_a_database_without_a_queue_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steady_queue_core.configured_backends.queue_databases", lambda: ["other"])
    migrate("steady_queue")


def test_the_queue_does_not_start_and_nothing_is_enqueued() -> None:
    for command in (["steady_queue"], ["check", "--deploy"]):
        with pytest.raises(SystemCheckError, match=r"ERRORS:\n.*steady_queue\.E001[\s\S]*sqlite"):
            told(*command)
    with pytest.raises(DialectNotFound) as refused:
        add.enqueue(1, 2)
    assert str(refused.value) == MESSAGE
    assert not connections["default"].in_atomic_block
