"""The one migration makes the tables that were intended, on every database, and takes them back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connections

from steady_queue_core.models.fields import ExactCharField

from ..servers.kinds import KINDS
from .fresh import fresh_alias

#: Under which names compare by code point; ``None``: they do so by themselves.
EXACT = {
    "sqlite": None,
    "postgres": "C",
    "mysql": "utf8mb4_0900_bin",
    "mariadb": "utf8mb4_nopad_bin",
}
#: Columns of the primary key, of the unique constraints and of the indexes of each table.
KEYS: dict[str, tuple[str, set[tuple[str, ...]], set[tuple[str, ...]]]] = {
    "jobs": ("id", set(), {("finished_at",)}),
    "ready_executions": (
        "job_id", set(), {("rank", "turn"), ("queue_name", "rank", "turn")},
    ),
    "claimed_executions": ("job_id", set(), {("process_id",)}),
    "scheduled_executions": ("job_id", set(), {("due_at", "rank", "job_id")}),
    "blocked_executions": (
        "job_id",
        set(),
        {("concurrency_key", "rank", "job_id")},
    ),
    "failed_executions": ("job_id", set(), {("created_at",), ("fingerprint", "created_at")}),
    "processes": ("id", {("name",)}, {("last_heartbeat_at",)}),
    "process_ends": ("id", {("name",)}, set()),
    "semaphores": ("key", set(), set()),
    "permits": ("job_id", set(), {("key",)}),
    "checkpoints": ("job_id", set(), set()),
    "steps": ("id", {("job_id", "name")}, set()),
    "statistics": (
        "id",
        {("span", "minute", "queue_name", "task_path", "writer")},
        set(),
    ),
    "samples": ("id", {("minute", "queue_name")}, set()),
    "shares": ("id", {("queue_name", "key")}, set()),
    "rates": ("key", set(), set()),
    "waiting_executions": ("job_id", set(), set()),
    "batches": ("id", {("member_id",)}, {("finished_at",)}),
    "batch_members": ("id", {("job_id",)}, {("batch_id", "state", "id")}),
    "dependencies": ("id", set(), {("parent_id",), ("job_id", "state", "id")}),
    "unique_keys": ("key", set(), {("job_id",), ("expires_at",)}),
    "turns": ("id", {("queue_name", "rank", "key")}, set()),
    "retentions": ("job_id", set(), {("expires_at",)}),
    "pauses": ("queue_name", set(), set()),
    "recurring_tasks": ("key", set(), set()),
    "recurring_executions": ("id", {("task_key", "run_at")}, set()),
}  # fmt: skip
MODELS = list(apps.get_app_config("steady_queue").get_models())


SERVERS = [pytest.param(alias, marks=pytest.mark.server(alias)) for alias in KINDS]


@pytest.fixture(scope="module", params=["sqlite", *SERVERS])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def migrated(
    kind: str, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any
) -> Iterator[str]:
    """The alias of a database to which the migration has been applied."""
    folder = tmp_path_factory.mktemp("fresh")
    with django_db_blocker.unblock(), fresh_alias(kind, folder) as alias:
        call_command("migrate", "steady_queue", database=alias, verbosity=0)
        yield alias


def tables(alias: str) -> set[str]:
    connection = connections[alias]
    with connection.cursor() as cursor:
        return set(connection.introspection.table_names(cursor))


def test_the_tables_have_the_columns_of_the_models(migrated: str) -> None:
    connection = connections[migrated]
    for model in MODELS:
        with connection.cursor() as cursor:
            found = connection.introspection.get_table_description(cursor, model._meta.db_table)
        expected = {field.column: field.null for field in model._meta.concrete_fields}
        assert {column.name: bool(column.null_ok) for column in found} == expected


def test_the_tables_have_the_keys_that_the_queries_need_and_no_others(migrated: str) -> None:
    connection = connections[migrated]
    for name, expected in KEYS.items():
        with connection.cursor() as cursor:
            found = connection.introspection.get_constraints(cursor, f"steady_queue_{name}")
        # On PostgreSQL Django adds an index for LIKE beside each unique column of text.
        keys = [each for key, each in found.items() if not key.endswith("_like")]
        assert not any(each["foreign_key"] for each in keys), name
        primary = {tuple(each["columns"]) for each in keys if each["primary_key"]}
        keys = [each for each in keys if each["index"] or each["unique"]]
        unique = {tuple(each["columns"]) for each in keys if each["unique"]} - primary
        others = {tuple(each["columns"]) for each in keys if not each["unique"]}
        assert (primary, unique, others) == ({(expected[0],)}, *expected[1:]), name


def test_every_table_of_the_queue_is_looked_at(migrated: str) -> None:
    created = {name for name in tables(migrated) if name.startswith("steady_queue_")}
    assert created == {f"steady_queue_{name}" for name in KEYS}
    assert created == {model._meta.db_table for model in MODELS}


def test_names_and_keys_compare_by_code_point(migrated: str, kind: str) -> None:
    connection = connections[migrated]
    for model in MODELS:
        with connection.cursor() as cursor:
            found = connection.introspection.get_table_description(cursor, model._meta.db_table)
        collations = {column.name: column.collation for column in found}
        for field in model._meta.concrete_fields:
            if isinstance(field, ExactCharField):
                assert collations[field.column] == EXACT[kind], (model, field)


def test_the_migration_can_be_taken_back(migrated: str) -> None:
    call_command("migrate", "steady_queue", "zero", database=migrated, verbosity=0)
    assert tables(migrated) == {"django_migrations"}
    call_command("migrate", "steady_queue", database=migrated, verbosity=0)
    assert len(tables(migrated)) == 1 + len(KEYS)


def test_processes_of_the_previous_version_go_on_failing_jobs(migrated: str) -> None:
    call_command("migrate", "steady_queue", "0013", database=migrated, verbosity=0)
    old, columns = "INSERT INTO steady_queue_failed_executions", "job_id, created_at"
    columns += ", exception_class, message"
    with connections[migrated].cursor() as cursor:
        cursor.execute(f"{old} ({columns}) VALUES (1, '2026-01-01 00:00:00', 'a.B', 'of old')")
        call_command("migrate", "steady_queue", database=migrated, verbosity=0)
        cursor.execute(f"{old} ({columns}) VALUES (2, '2026-01-01 00:00:00', 'a.B', 'of now')")
        cursor.execute("SELECT job_id, fingerprint FROM steady_queue_failed_executions ORDER BY 1")
        assert cursor.fetchall() in ([(1, None), (2, None)], ((1, None), (2, None)))
        cursor.execute("DELETE FROM steady_queue_failed_executions")


@pytest.mark.usefixtures("migrated")
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", "steady_queue", check_changes=True, dry_run=True, verbosity=0)
