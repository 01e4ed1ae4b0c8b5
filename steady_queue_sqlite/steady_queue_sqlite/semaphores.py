"""Permits, each in one statement."""

from __future__ import annotations

from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import tables

from .enqueue import PRESENT, later
from .locking import transaction

TAKE = f"""
INSERT INTO {tables.SEMAPHORES} ("key", value, "limit", expires_at) VALUES (%s, %s - 1, %s, %s)
ON CONFLICT ("key") DO UPDATE SET value = value - 1, "limit" = excluded."limit",
                                  expires_at = excluded.expires_at
WHERE value > 0 RETURNING value"""

GIVE = f"""
UPDATE {tables.SEMAPHORES} SET value = value + 1, "limit" = %s WHERE "key" = %s AND value < %s"""


def take_permit(connection: BaseDatabaseWrapper, key: str, limit: int, duration: timedelta) -> bool:
    with transaction(connection), connection.cursor() as cursor:
        cursor.execute(PRESENT)
        expires_at = later(cursor.fetchone()[0], duration.total_seconds())
        cursor.execute(TAKE, [key, limit, limit, expires_at])
        return cursor.fetchone() is not None


def give_permit(connection: BaseDatabaseWrapper, key: str, limit: int) -> bool:
    with transaction(connection), connection.cursor() as cursor:
        cursor.execute(GIVE, [limit, key, limit])
        return bool(cursor.rowcount)
