"""Django's connection pool and forked children: a child must not use its parent's sockets."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

#: What a child has inherited. It is kept: to let go of it would end the parent's sessions.
_inherited: list[Any] = []


def part_in_children(connection: BaseDatabaseWrapper) -> None:
    """Let every child that is forked from now on begin with pools of its own."""
    if connection.settings_dict["OPTIONS"].get("pool") and hasattr(os, "register_at_fork"):
        wrapper_class: Any = type(connection)
        _part_in_children(wrapper_class)


@cache
def _part_in_children(wrapper_class: Any) -> None:
    def part() -> None:
        _inherited.append(dict(wrapper_class._connection_pools))
        wrapper_class._connection_pools.clear()
        for wrapper in connections.all(initialized_only=True):
            if isinstance(wrapper, wrapper_class) and not wrapper.in_atomic_block:
                _inherited.append(wrapper.connection)
                wrapper.connection = None

    os.register_at_fork(after_in_child=part)
