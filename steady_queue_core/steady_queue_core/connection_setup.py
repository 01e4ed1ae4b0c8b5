"""Lets the dialect configure the project's own connections to a queue's database."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from .configured_backends import queue_databases
from .dialects import dialect_for


def set_up_connections() -> None:
    """From now on, let the dialect set up each new connection to a queue's database."""
    connection_created.connect(_set_up, dispatch_uid="steady_queue_share")


def _set_up(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    try:
        if connection.alias in queue_databases():
            dialect_for(connection.alias).share(connection)
    except ImproperlyConfigured:
        return  # The system checks report it. The project's own queries must not fail.
