"""The dialect keeps what the contract promises, on MySQL and on MariaDB.

With DEBUG, as in a project that ``startproject`` has made: MySQL's own driver then raises warnings.
"""

from __future__ import annotations

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import override_settings

from steady_queue_core.conformance import DialectConformance

from .cases import ServerCase, on_each_server


class Conformance(DialectConformance, ServerCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.addClassCleanup(connections[cls.using].close)
        cls.enterClassContext(override_settings(DEBUG=True))
        connections[cls.using].close()
        super().setUpClass()

    def shorten_lock_wait(self, connection: BaseDatabaseWrapper) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")


on_each_server(globals(), Conformance)
