"""A migration operation whose statements come from the dialect."""

from __future__ import annotations

from typing import Any

from django.db import router
from django.db.migrations.operations.base import Operation

from ..dialects import dialect_for
from ..errors import DialectNotFound


class TuneTables(Operation):
    """Sets the storage and vacuum options that the dialect recommends for the tables."""

    reversible = True

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Leave the models unchanged."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        connection = schema_editor.connection
        if not router.allow_migrate(connection.alias, app_label):
            return
        try:
            statements = dialect_for(connection.alias).tune_tables(connection)
        except DialectNotFound:
            return  # Migrations also run on databases without a queue.
        for statement in statements:
            schema_editor.execute(statement)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Leave the tables tuned."""

    def describe(self) -> str:
        return "Let the dialect tune the tables"
