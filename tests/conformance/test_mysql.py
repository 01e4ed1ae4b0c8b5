"""The MySQL dialect keeps what the contract promises, on MySQL."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

from steady_queue_core.dialects.conformance import DialectConformance


class TestMySQLConformance(DialectConformance, TransactionTestCase):
    using = "mysql"
    databases = {"mysql"}

    def shorten_lock_wait(self, connection: BaseDatabaseWrapper) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
