"""The database's clock, and the form in which times are stored: always UTC."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression
from django.db.models.functions import Now
from django.db.models.sql import Query


class Clock(Now):
    """The present time of the statement; selected, it is in UTC under any ``USE_TZ``."""

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        # Django's expression would be in the session's time zone.
        return self.as_sql(compiler, connection, template="UTC_TIMESTAMP(6)", **context)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        # Times are compared as text, and Django stores six digits if it stores any.
        template = "(STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f', 'NOW') || '000')"
        return self.as_sql(compiler, connection, template=template, **context)

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        # Without USE_TZ Django drops the zone of the driver's value, which is the session's.
        if not settings.USE_TZ and keeps_zones(compiler.connection):
            sql = f"({sql}) AT TIME ZONE 'UTC'"
        return sql, params


def now(connection: BaseDatabaseWrapper) -> Expression:
    """Return an expression for the present time of the statement.

    It is CURRENT_TIMESTAMP unless Django knows a better one for the database. If that stands still
    within a transaction, the dialect needs an expression of its own.
    """
    return Clock()


def keeps_zones(connection: BaseDatabaseWrapper) -> bool:
    """Return whether columns of times have time zones."""
    return "with time zone" in connection.data_types["DateTimeField"]


def check_zone(connection: BaseDatabaseWrapper, *, id: str) -> Iterator[CheckMessage]:
    """Object to a zone in which Django stores the times of a database without zones."""
    zone = connection.settings_dict.get("TIME_ZONE")
    if zone not in (None, "UTC"):
        yield Error(
            f"TIME_ZONE of database {connection.alias!r} is {zone!r}; the queue keeps UTC there.",
            hint="Remove TIME_ZONE from that database, or give the queue a database of its own.",
            id=id,
        )


def current_time(connection: BaseDatabaseWrapper, expression: Expression) -> datetime:
    """Query the value of ``expression``, a clock; return it aware, in UTC."""
    query: Query = Query(cast(Any, None), alias_cols=False)
    compiler = query.get_compiler(connection=connection)
    sql, params = compiler.compile(expression.resolve_expression(query))
    sql, params = expression.select_format(compiler, sql, params)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {sql}", params)
        value: Any = cursor.fetchone()[0]
    converters = connection.ops.get_db_converters(expression)
    for converter in [*converters, *expression.get_db_converters(connection)]:
        value = converter(value, expression, connection)
    return aware(value)


def aware(value: datetime) -> datetime:
    """Return a time from the database as aware, in UTC."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def storable(value: datetime) -> datetime:
    """Return an aware time in the form that the ORM stores as UTC under any ``USE_TZ``."""
    value = value.astimezone(UTC)
    return value if settings.USE_TZ else value.replace(tzinfo=None)
