"""Column types whose database form depends on the dialect."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from ..dialects import dialect_for, portable
from ..errors import DialectNotFound


class ExactCharField(models.CharField):
    """Text compared by code point, so that different names are never equal.

    MySQL's default collation takes ``A``, ``a`` and ``á`` for one name, and MariaDB's takes ``a ``
    for ``a``. The dialect names the collation that compares exactly.
    """

    def db_parameters(self, connection: BaseDatabaseWrapper) -> dict[str, Any]:
        return _exact(super().db_parameters(connection), connection)


class ExactTextField(models.TextField):
    """Text of any length, with any character.

    The default character set of older MariaDB servers is limited to latin1.
    """

    def db_parameters(self, connection: BaseDatabaseWrapper) -> dict[str, Any]:
        return _exact(super().db_parameters(connection), connection)


def _exact(given: Any, connection: BaseDatabaseWrapper) -> dict[str, Any]:
    parameters: dict[str, Any] = dict(given)
    try:
        collation = dialect_for(connection.alias).exact_collation(connection)
    except DialectNotFound:
        # Migrations also run on databases without a queue.
        collation = None
    if collation:
        parameters["collation"] = collation
    return parameters


class TurnField(models.FloatField):
    """The turn of a ready job: that of a plain queue is the job's id, which is what a row gets that
    is stored without a turn. Migrations see an ordinary ``FloatField``."""

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.FloatField", args, kwargs

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        value = super().pre_save(model_instance, add)
        if not isinstance(value, int | float):  # Django's stand-in for the database's default.
            value = float(model_instance.pk)
            setattr(model_instance, self.attname, value)
        return value


class InstantField(models.DateTimeField):
    """A point in time, in microseconds: aware with ``USE_TZ``, otherwise naive in UTC.

    A column with time zones would interpret naive values in the zone of the session, where an hour
    is missing in spring. Migrations see an ordinary ``DateTimeField``.
    """

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.DateTimeField", args, kwargs

    def get_db_prep_value(
        self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False
    ) -> Any:
        value = super().get_db_prep_value(value, connection, prepared)
        if (
            isinstance(value, datetime)
            and value.tzinfo is None
            and portable.keeps_zones(connection)
        ):
            return value.replace(tzinfo=UTC)
        if isinstance(value, str) and "." not in value:
            # Compared as text, a full second would sort before itself.
            return f"{value}.000000"
        return value

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        if not settings.USE_TZ and portable.keeps_zones(compiler.connection):
            sql = f"({sql}) AT TIME ZONE 'UTC'"
        return sql, params
