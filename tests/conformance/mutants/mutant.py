"""How a mutant is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steady_queue_core.dialects.portable.models import model
from steady_queue_sqlite import plugin as sqlite

from ..plugins import Plugin, hooks_of, plugin, selecting


@dataclass(frozen=True)
class Mutant:
    """A way to be wrong, and the cases that must notice."""

    name: str
    hooks: dict[str, Any]
    cases: tuple[str, ...]

    def plugin(self) -> Plugin:
        return plugin("sqlite", hooks_of(sqlite) | self.hooks)


ALL: list[Mutant] = []


def fails(*cases: str, hook: str) -> Callable[[Any], Any]:
    """Make the decorated function a mutant: it stands in for ``hook``, named without prefix.

    Cases are the names of the methods without ``test_``.
    """

    def register(function: Any) -> Any:
        add(function.__name__, {hook: function}, *cases)
        return function

    return register


def add(name: str, hooks: dict[str, Any], *cases: str) -> None:
    """Register a mutant that replaces several hooks."""
    replaced = {f"steady_queue_{hook}": function for hook, function in hooks.items()}
    unknown = replaced.keys() - hooks_of(sqlite).keys() - {
        "steady_queue_exact_collation", "steady_queue_limit_silence", "steady_queue_lock_turns",
        "steady_queue_ring", "steady_queue_save_turns",
    }  # fmt: skip
    assert not unknown, unknown
    ALL.append(Mutant(name, replaced, tuple(f"test_{case}" for case in cases)))


def claiming(**facts: Any) -> Any:
    """Return a selection hook that states wrong ``facts``."""
    return selecting("sqlite", **({"skips_locked": False} | facts))


def rows(connection: Any, name: str) -> Any:
    """Return the rows of a model in the database of ``connection``."""
    return model(name).objects.using(connection.alias).all()


def commit(connection: Any) -> None:
    """End the transaction of ``connection`` behind Django's back."""
    connection.connection.commit()


def shorten(connection: Any, table: str, column: str) -> None:
    """Leave three digits of the fractions of seconds that a column holds as text."""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {column} = substr({column}, 1, 23)")
