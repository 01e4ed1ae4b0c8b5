"""Row-level security: tables that hide rows from a user of the database, as if there were none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from django.core.checks import CheckMessage, Error, Warning
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import INFO, PROBLEM, WARNING, Observation, rows_of, tables

#: Without its table, Django takes the migrations for undone.
MIGRATIONS = "django_migrations"
OURS = [*sorted(name for constant, name in vars(tables).items() if constant.isupper()), MIGRATIONS]

# A table without a permissive policy for this user shows no row.
SECURED = """
SELECT current_user::text, quote_ident(current_user), relation.oid::regclass::text,
       row_security_active(relation.oid),
       EXISTS (
         SELECT FROM pg_policy policy
         WHERE policy.polrelid = relation.oid AND policy.polpermissive
           AND policy.polcmd IN ('*', 'r') AND EXISTS (
             SELECT FROM unnest(policy.polroles) AS role
             WHERE role = 0 OR pg_has_role(role, 'USAGE')))
FROM pg_class relation
WHERE relation.relrowsecurity
  AND relation.oid IN (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name)
ORDER BY relation.relname"""


class Secured(NamedTuple):
    """Tables of one kind, and whom they are kept from."""

    user: str
    quoted_user: str
    tables: list[str]

    @property
    def named(self) -> str:
        """Some of the tables."""
        more = f" and {len(self.tables) - 3} more" if len(self.tables) > 3 else ""
        return f"{', '.join(self.tables[:3])}{more}"

    @property
    def remedy(self) -> str:
        """What lets this user see all rows."""
        switch = "; ".join(f"ALTER TABLE {each} DISABLE ROW LEVEL SECURITY" for each in self.tables)
        return f"As a superuser: ALTER ROLE {self.quoted_user} BYPASSRLS. Or as the owner: {switch}"


def secured(connection: BaseDatabaseWrapper) -> dict[str, Secured]:
    """Return the tables that have row-level security, by how much that hides from this user: all
    rows, those of policies, or none."""
    found: dict[str, Secured] = {}
    for user, quoted, table, is_active, has_policy in rows_of(connection, SECURED, OURS):
        kind = INFO if not is_active else WARNING if has_policy else PROBLEM
        found.setdefault(kind, Secured(user, quoted, [])).tables.append(table)
    return found


def hidden_rows(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    for kind, each in secured(connection).items():
        yield Observation(
            "rows-hidden", _text(kind, each), each.remedy if kind != INFO else "", kind
        )


def messages(connection: BaseDatabaseWrapper) -> Iterator[CheckMessage]:
    """Yield the messages of the system check."""
    for kind, each in secured(connection).items():
        if kind == PROBLEM:
            yield Error(_text(kind, each), hint=each.remedy, id="steady_queue.E204")
        elif kind == WARNING:
            yield Warning(_text(kind, each), hint=each.remedy, id="steady_queue.W205")


def _text(kind: str, each: Secured) -> str:
    if kind == PROBLEM:
        return (
            f"Row-level security hides all rows from user {each.user}, since no policy is for that "
            f"user: of {each.named}. Whoever is that user sees no jobs, and enqueues none."
        )
    if kind == WARNING:
        return (
            f"Row-level security shows user {each.user} only what policies allow: of {each.named}. "
            "Jobs and processes may be hidden."
        )
    return (
        f"Row-level security is on for {each.named}. User {each.user} sees all rows; other users "
        "see what policies allow, and without any, nothing."
    )
