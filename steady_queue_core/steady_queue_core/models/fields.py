"""Column types whose database form depends on the dialect."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from ..dialects import dialect_for
from ..errors import DialectNotFound


class ExactCharField(models.CharField):
    """Text that is compared by code point: no two different names are ever equal.

    Under the default collation of MySQL ``A``, ``a`` and ``á`` are one name, and under MariaDB's
    ``a `` is ``a``. The dialect names the collation that compares exactly.
    """

    def db_parameters(self, connection: BaseDatabaseWrapper) -> dict[str, Any]:
        parameters = dict(super().db_parameters(connection))
        try:
            collation = dialect_for(connection.alias).exact_collation(connection)
        except DialectNotFound:
            # Migrations also run on databases that do not hold the queue.
            collation = None
        if collation:
            parameters["collation"] = collation
        return parameters
