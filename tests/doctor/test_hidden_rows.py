"""Rows that are there, and that row-level security hides from the user of the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.checks import run_checks
from django.db import connections

from steady_queue_core.doctor import Finding, examine, examine_job
from steady_queue_core.models import ReadyExecution
from steady_queue_core.overview import Overview, Scope

from .pasting import require_pasteable
from .test_servers import execute, on_postgres, ward
from .ward import Ward

__all__ = ["ward"]
READY = ReadyExecution._meta.db_table


def role_of(using: str) -> str:
    """Return a user of this database alone: the server has those of all."""
    return f'"worker of {connections[using].settings_dict["NAME"]}"'


@contextmanager
def secured(using: str, *tables: str, policy: str = "") -> Iterator[None]:
    """Row-level security for tables, and a session whose user is not their owner."""
    role = role_of(using)
    execute(
        using, f"DROP ROLE IF EXISTS {role}", f"CREATE ROLE {role}",
        f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}",
        *(f"ALTER TABLE {each} ENABLE ROW LEVEL SECURITY" for each in tables),
        *(f"CREATE POLICY ours ON {each} {policy}" for each in tables if policy),
    )  # fmt: skip
    try:
        execute(using, f"SET ROLE {role}")
        yield
    finally:
        execute(
            using, "RESET ROLE",
            *(f"DROP POLICY IF EXISTS ours ON {each}" for each in tables),
            *(f"ALTER TABLE {each} DISABLE ROW LEVEL SECURITY" for each in tables),
            f"DROP OWNED BY {role}", f"DROP ROLE {role}",
        )  # fmt: skip


def first(using: str) -> Finding:
    found = examine(using)[0]
    require_pasteable(found.remedy)
    return found


def check(using: str) -> list[str | None]:
    return [each.id for each in run_checks(tags=["steady_queue"], databases=[using])]


@on_postgres
def test_rows_that_no_policy_shows(using: str, ward: Ward) -> None:
    [job_id] = ward.ready(1)
    assert "steady_queue.E204" not in check(using)
    with secured(using, READY, "steady_queue_jobs"):
        assert ReadyExecution.objects.using(using).count() == 0
        found = first(using)
        seen = [each.finding.code for each in Overview.of(Scope(using), looks_closer=True).problems]
        of_job = [each.code for each in examine_job(job_id, using)]
        assert "steady_queue.E204" in check(using)
    role = role_of(using)
    assert (found.code, found.severity) == ("rows-hidden", "problem")
    assert f"hides all rows from user {role[1:-1]}," in found.text
    assert READY in found.text
    assert f"ALTER ROLE {role} BYPASSRLS" in found.remedy
    assert f"ALTER TABLE {READY} DISABLE ROW LEVEL SECURITY" in found.remedy
    assert seen[0] == of_job[0] == "rows-hidden"
    assert examine(using) == []


@on_postgres
def test_rows_of_which_policies_show_some(using: str, ward: Ward) -> None:
    with secured(using, READY, policy="USING (queue_name <> 'secret')"):
        found = [each for each in examine(using) if each.code == "rows-hidden"]
        assert "steady_queue.W205" in check(using)
    assert [each.severity for each in found] == ["warning"]
    assert "only what policies allow" in found[0].text


@on_postgres
def test_policies_for_others_alone(using: str, ward: Ward) -> None:
    with secured(using, READY, policy="FOR INSERT WITH CHECK (true)"):
        assert first(using).severity == "problem"


@on_postgres
def test_hidden_migrations_are_not_undone(using: str, ward: Ward) -> None:
    with secured(using, "django_migrations", READY):
        assert first(using).code == "rows-hidden"


@on_postgres
def test_the_owner_is_told_of_other_users(using: str, ward: Ward) -> None:
    with secured(using, READY):
        execute(using, "RESET ROLE")
        assert connections[using].is_usable()
        [found] = examine(using)
        assert "steady_queue.E204" not in check(using)
    assert (found.code, found.severity) == ("rows-hidden", "info")
