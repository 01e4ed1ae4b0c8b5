"""Statements that the server plans once for a session: planning takes longer than running them.

By SQL's own PREPARE, since Django's cursors write values into the text. In sessions alone that are
a queue process's own: others may be handed to somebody else in between.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

PLACEHOLDER = re.compile(r"%\((\w+)\)s")


class Plans:
    """The statements prepared in one session."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._prepared: dict[str, tuple[str, list[str]]] = {}

    @classmethod
    def begin(cls, connection: BaseDatabaseWrapper) -> None:
        """From now on, prepare statements in the present session of ``connection``."""
        wrapper: Any = connection
        wrapper.steady_queue_plans = cls(wrapper.connection)

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper) -> Plans | None:
        """Return the plans of the present session; ``None`` where it keeps none."""
        wrapper: Any = connection
        plans: Plans | None = getattr(wrapper, "steady_queue_plans", None)
        if plans is None or wrapper.connection is None or plans._session is not wrapper.connection:
            return None
        return plans

    def execute(self, cursor: Any, statement: str, values: Mapping[str, Any]) -> None:
        """Run a statement, after preparing it the first time."""
        if statement not in self._prepared:
            names = list(dict.fromkeys(PLACEHOLDER.findall(statement)))
            places = {name: f"${place}" for place, name in enumerate(names, 1)}
            name = f"steady_queue_{len(self._prepared)}"
            text = PLACEHOLDER.sub(lambda found: places[found[1]], statement)
            cursor.execute(f"PREPARE {name} AS {text}")
            arguments = f"({', '.join(['%s'] * len(names))})" if names else ""
            self._prepared[statement] = f"EXECUTE {name} {arguments}", names
        run, names = self._prepared[statement]
        cursor.execute(run, [values[name] for name in names])
