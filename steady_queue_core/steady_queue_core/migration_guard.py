"""Refusing to make the queue's tables where no dialect says how: their columns would compare names
by the database's own rules from then on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db.models.signals import pre_migrate


def guard_migrations(app: AppConfig) -> None:
    """Look at what is to be migrated, before anything is."""
    pre_migrate.connect(_refuse_without_dialect, sender=app, dispatch_uid=_refuse_without_dialect)


def _refuse_without_dialect(
    sender: AppConfig, using: str, plan: Sequence[tuple[Any, bool]], **kwargs: Any
) -> None:
    from .configured_backends import queue_databases
    from .dialects import dialect_for
    from .errors import DialectError

    ours = any(step.app_label == sender.label and not backwards for step, backwards in plan)
    try:
        if ours and using in queue_databases():
            dialect_for(using)
    except DialectError as error:
        raise CommandError(
            f"The tables of the queue cannot be migrated. {error} Nothing was migrated; other apps "
            "can be until then: manage.py migrate APP."
        ) from error
    except ImproperlyConfigured:
        return  # A system check reports it.
