"""Django's connection pool in forked children, which must not use their parent's sockets."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

#: Inherited pools and sessions. They are kept: to let go of them would end the parent's sessions.
_inherited: list[Any] = []


def replace_pools_in_children(connection: BaseDatabaseWrapper) -> None:
    """Give every child that is forked from now on pools of its own."""
    if connection.settings_dict["OPTIONS"].get("pool") and hasattr(os, "register_at_fork"):
        wrapper_class: Any = type(connection)
        _replace_pools_in_children(wrapper_class)


@cache
def _replace_pools_in_children(wrapper_class: Any) -> None:
    def replace_pools() -> None:
        _inherited.append(dict(wrapper_class._connection_pools))
        wrapper_class._connection_pools.clear()
        for wrapper in connections.all(initialized_only=True):
            if isinstance(wrapper, wrapper_class) and not wrapper.in_atomic_block:
                _inherited.append(wrapper.connection)
                wrapper.connection = None

    os.register_at_fork(after_in_child=replace_pools)
