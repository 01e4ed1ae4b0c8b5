"""Permits, each in one statement."""

from __future__ import annotations

from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import tables

from .enqueue import PRESENT, later
from .locking import transaction

# The row counts by the limit it was written with, which may be another than today's.
TAKE = f"""
INSERT INTO {tables.SEMAPHORES} AS row ("key", value, "limit", expires_at)
VALUES (%s, %s - 1, %s, %s)
ON CONFLICT ("key") DO UPDATE SET value = row.value - row."limit" + excluded."limit" - 1,
                                  "limit" = excluded."limit", expires_at = excluded.expires_at
WHERE row.value - row."limit" + excluded."limit" > 0 RETURNING value"""

# A smaller limit is taken over once no more permits than that are out.
GIVE = f"""
UPDATE {tables.SEMAPHORES}
SET value = value + 1 + iif(value + 1 - "limit" + %s < 0, 0, %s - "limit"),
    "limit" = iif(value + 1 - "limit" + %s < 0, "limit", %s)
WHERE "key" = %s AND "limit" > value"""


def take_permit(connection: BaseDatabaseWrapper, key: str, limit: int, duration: timedelta) -> bool:
    if limit <= 0:
        return False
    with transaction(connection), connection.cursor() as cursor:
        cursor.execute(PRESENT)
        expires_at = later(cursor.fetchone()[0], duration.total_seconds())
        cursor.execute(TAKE, [key, limit, limit, expires_at])
        return cursor.fetchone() is not None


def give_permit(connection: BaseDatabaseWrapper, key: str, limit: int) -> bool:
    with transaction(connection), connection.cursor() as cursor:
        cursor.execute(GIVE, [limit, limit, limit, limit, key])
        return bool(cursor.rowcount)
