"""The app that reports to Sentry."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings

SETTING = "STEADY_QUEUE_SENTRY"


class SentryConfig(AppConfig):
    """Reports what happens in the queue, as ``STEADY_QUEUE_SENTRY`` says, wherever the project has
    initialised ``sentry_sdk``."""

    name = "steady_queue_core.contrib.sentry"
    label = "steady_queue_sentry"
    verbose_name = "Steady Queue: Sentry"

    def ready(self) -> None:
        """Put the middleware around all tasks, and connect the receivers."""
        from .installation import install_as
        from .options import SentryOptions

        install_as(SentryOptions.parse(SETTING, getattr(settings, SETTING, {})))
