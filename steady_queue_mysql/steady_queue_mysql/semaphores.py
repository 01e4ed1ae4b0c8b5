"""Permits: a round trip each, and a second one for the first permit of all."""

from __future__ import annotations

from datetime import timedelta

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import tables

from .clock import NOW_SQL, microseconds
from .conversation import Conversation, converse
from .packets import Statement

# The row counts by the limit it was written with, which may be another than today's. Assignments
# are done from left to right, and see what those before them have done.
TAKE = f"""
UPDATE {tables.SEMAPHORES}
SET value = value - `limit` + {{limit}} - 1, `limit` = {{limit}},
    expires_at = {NOW_SQL} + INTERVAL {{duration}} MICROSECOND
WHERE `key` = %s AND value > `limit` - {{limit}}"""
# An upsert could not tell: Django has the server count rows found, not rows changed, and both of
# an upsert's outcomes find one.
IS_THERE = f"SELECT 1 FROM {tables.SEMAPHORES} WHERE `key` = %s LOCK IN SHARE MODE"
CREATE = f"""
INSERT INTO {tables.SEMAPHORES} (`key`, value, `limit`, expires_at)
VALUES (%s, {{limit}} - 1, {{limit}}, {NOW_SQL} + INTERVAL {{duration}} MICROSECOND)"""

# A smaller limit is taken over once no more permits than that are out. What the first statement
# has changed the second does not find: its value is not negative.
GIVE_FITTING = f"""
UPDATE {tables.SEMAPHORES} SET value = value - `limit` + {{limit}} + 1, `limit` = {{limit}}
WHERE `key` = %s AND value < `limit` AND value >= `limit` - {{limit}} - 1"""
GIVE_BEYOND = f"""
UPDATE {tables.SEMAPHORES} SET value = value + 1
WHERE `key` = %s AND value < `limit` - {{limit}} - 1"""


def take_permit(connection: BaseDatabaseWrapper, key: str, limit: int, duration: timedelta) -> bool:
    if limit <= 0:
        return False
    take, create = (
        Statement(sql.format(limit=int(limit), duration=microseconds(duration)), [key])
        for sql in (TAKE, CREATE)
    )

    def work(conversation: Conversation) -> bool:
        while True:
            taken, there = conversation.ask([take, Statement(IS_THERE, [key])], last=True)
            if taken.found or there.rows:
                return bool(taken.found)
            try:
                conversation.ask([create], last=True)
                return True
            except IntegrityError:
                continue  # Somebody else has created it meanwhile: its permits count now.

    return converse(connection, work)


def give_permit(connection: BaseDatabaseWrapper, key: str, limit: int) -> bool:
    statements = [
        Statement(sql.format(limit=int(limit)), [key]) for sql in (GIVE_FITTING, GIVE_BEYOND)
    ]

    def work(conversation: Conversation) -> bool:
        return any(answer.found for answer in conversation.ask(statements, last=True))

    return converse(connection, work)
