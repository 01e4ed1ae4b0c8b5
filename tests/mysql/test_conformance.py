"""The dialect keeps what the contract promises, on MySQL and on MariaDB."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects.conformance import DialectConformance

from .cases import ServerCase, on_each_server


class Conformance(DialectConformance, ServerCase):
    def shorten_lock_wait(self, connection: BaseDatabaseWrapper) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")


on_each_server(globals(), Conformance)
