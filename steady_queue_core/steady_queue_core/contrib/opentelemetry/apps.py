"""The app that turns tracing on."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings

SETTING = "STEADY_QUEUE_OPENTELEMETRY"


class OpenTelemetryConfig(AppConfig):
    """Instruments the queue as ``STEADY_QUEUE_OPENTELEMETRY`` says."""

    name = "steady_queue_core.contrib.opentelemetry"
    label = "steady_queue_opentelemetry"
    verbose_name = "Steady Queue: OpenTelemetry"

    def ready(self) -> None:
        """Put the middleware around all tasks, and connect the receivers."""
        from .instrumentation import instrument_as
        from .options import TracingOptions

        instrument_as(TracingOptions.parse(SETTING, getattr(settings, SETTING, {})))
