"""The PostgreSQL dialect keeps what the contract promises, however the project is configured."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

from steady_queue_core.dialects.conformance import DialectConformance

from .servers import ALIAS


class PostgresConformance(DialectConformance):
    using = ALIAS

    def shorten_lock_wait(self, connection: BaseDatabaseWrapper) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET deadlock_timeout = '20ms'")


class TestPostgresConformance(PostgresConformance, TransactionTestCase):
    databases = {ALIAS}
