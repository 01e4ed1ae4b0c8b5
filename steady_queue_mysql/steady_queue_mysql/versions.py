"""Telling MySQL from MariaDB."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper


def is_mariadb(connection: BaseDatabaseWrapper) -> bool:
    """Ask the server: MySQL's own driver takes MariaDB for MySQL 5.5.5."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        return "mariadb" in str(cursor.fetchone()[0]).lower()
