"""The configuration of the Django app."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules


class SteadyQueueConfig(AppConfig):
    """Registers the system checks and imports every installed app's ``tasks`` module."""

    name = "steady_queue_core"
    label = "steady_queue"
    verbose_name = "Steady Queue"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from . import checks  # noqa: F401  (registers the checks)

        try:
            from .configured_backends import fair_queues_on
            from .connection_setup import set_up_connections
            from .features.fair import of_database
            from .migration_guard import guard_migrations
        except ImproperlyConfigured:
            return  # There is no task framework, as a system check reports.
        of_database.ask(fair_queues_on)
        autodiscover_modules("tasks")
        set_up_connections()
        guard_migrations(self)
