"""The database's clock, and the form in which instants are stored: always UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression
from django.db.models.functions import Now
from django.db.models.sql import Query


class Clock(Now):
    """The present time of the statement; when it is selected, in UTC under any ``USE_TZ``."""

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        # Django's own is in the time zone of the session there.
        return self.as_sql(compiler, connection, template="UTC_TIMESTAMP(6)", **context)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        # Instants are compared as text there, and Django stores six digits where it stores any.
        template = "(STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f', 'NOW') || '000')"
        return self.as_sql(compiler, connection, template=template, **context)

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        # Without USE_TZ Django cuts off the zone that the driver gives, which is the session's.
        if not settings.USE_TZ and keeps_zones(compiler.connection):
            sql = f"({sql}) AT TIME ZONE 'UTC'"
        return sql, params


def now(connection: BaseDatabaseWrapper) -> Expression:
    """Return an expression for the present time of the statement.

    On a database that Django does not know to have another one it is CURRENT_TIMESTAMP, which may
    stand still within a transaction: then a dialect needs an expression of its own.
    """
    return Clock()


def keeps_zones(connection: BaseDatabaseWrapper) -> bool:
    """Whether the columns of instants know time zones."""
    return "with time zone" in connection.data_types["DateTimeField"]


def current_time(connection: BaseDatabaseWrapper, expression: Expression) -> datetime:
    """Ask the database for the value of ``expression``, a clock; return it aware, in UTC."""
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
    """Return an instant read from the database as aware, in UTC."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def storable(value: datetime) -> datetime:
    """Return an aware instant in the form in which the ORM stores UTC under any ``USE_TZ``."""
    value = value.astimezone(UTC)
    return value if settings.USE_TZ else value.replace(tzinfo=None)
