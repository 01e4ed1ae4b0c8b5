"""The dialect keeps what the contract promises, on MySQL and on MariaDB."""

from __future__ import annotations

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

from steady_queue_core.dialects import dialect_for
from steady_queue_core.dialects.conformance import DialectConformance

from .conftest import ALIASES


class ServerConformance(DialectConformance):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        dialect_for(cls.using).share(connections[cls.using])

    def shorten_lock_wait(self, connection: BaseDatabaseWrapper) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")


if "mysql" in ALIASES:

    class TestMySQLConformance(ServerConformance, TransactionTestCase):
        using = "mysql"
        databases = {"mysql"}


if "mariadb" in ALIASES:

    class TestMariaDBConformance(ServerConformance, TransactionTestCase):
        using = "mariadb"
        databases = {"mariadb"}
