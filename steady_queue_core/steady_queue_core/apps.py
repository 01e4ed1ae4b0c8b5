"""The Django application."""

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
        from .sharing import share_connections

        try:
            from . import compat  # noqa: F401  (its import is the question)
        except ImproperlyConfigured:
            return  # There is no task framework: a check says so.
        autodiscover_modules("tasks")
        share_connections()
