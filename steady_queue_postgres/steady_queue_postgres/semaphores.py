"""Permits, each in one statement."""

from __future__ import annotations

from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import tables

from .clock import NOW_SQL, to_microseconds
from .statements import fetch

# The row counts by the limit it was written with, which may be another than today's.
TAKE = f"""
INSERT INTO {tables.SEMAPHORES} AS known ("key", value, "limit", expires_at)
VALUES (%(key)s, %(limit)s - 1, %(limit)s,
        {NOW_SQL} + %(duration)s * interval '1 microsecond')
ON CONFLICT ("key") DO UPDATE
SET value = known.value - known."limit" + excluded."limit" - 1, "limit" = excluded."limit",
    expires_at = excluded.expires_at
WHERE known.value - known."limit" + excluded."limit" > 0
RETURNING 1"""

# A smaller limit is taken over once no more permits than that are out.
FITS = 'value + 1 - "limit" + %(limit)s >= 0'
GIVE = f"""
UPDATE {tables.SEMAPHORES}
SET value = value + 1 + CASE WHEN {FITS} THEN %(limit)s - "limit" ELSE 0 END,
    "limit" = CASE WHEN {FITS} THEN %(limit)s ELSE "limit" END
WHERE "key" = %(key)s AND value < "limit"
RETURNING 1"""


def take_permit(connection: BaseDatabaseWrapper, key: str, limit: int, duration: timedelta) -> bool:
    if limit <= 0:
        return False
    values = {"key": key, "limit": limit, "duration": to_microseconds(duration)}
    return bool(fetch(connection, TAKE, values))


def give_permit(connection: BaseDatabaseWrapper, key: str, limit: int) -> bool:
    return bool(fetch(connection, GIVE, {"key": key, "limit": limit}))
