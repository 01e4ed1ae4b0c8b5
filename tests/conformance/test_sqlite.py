"""The SQLite dialect keeps what the contract promises."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

from steady_queue_core.conformance import DialectConformance


class TestSQLiteConformance(DialectConformance, TransactionTestCase):
    databases = {"default"}

    def shorten_lock_wait(self, connection: BaseDatabaseWrapper) -> None:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 100")
