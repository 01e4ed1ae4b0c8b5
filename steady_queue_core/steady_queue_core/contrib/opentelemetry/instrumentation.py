"""Turning tracing on and off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ImproperlyConfigured

try:
    from opentelemetry import metrics, trace
except ImportError as error:
    raise ImproperlyConfigured(
        "steady_queue_core.contrib.opentelemetry needs the package opentelemetry-api: "
        "pip install 'steady-queue-core[otel]'"
    ) from error

from ...middleware import install, uninstall
from .clients import Clients
from .middleware import Tracing
from .options import LINK, TracingOptions
from .processes import Processes
from .telemetry import Telemetry


@dataclass(frozen=True)
class _Parts:
    """What is around the queue."""

    tracing: Tracing
    clients: Clients
    processes: Processes


_installed: list[_Parts] = []


def instrument(
    *,
    propagate: str = LINK,
    receive_and_settle: bool = True,
    concurrency_keys: bool = False,
    gauges: bool = True,
    configure: str | None = None,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> None:
    """Make spans and metrics of the tasks of all backends in this process, and in those that it
    forks. What was instrumented before is replaced.

    The options are those of ``TracingOptions``. ``tracer_provider``, ``meter_provider``: used in
    place of those of the project. Raises ``ConfigurationError`` for wrong options.
    """
    given = {
        "propagate": propagate,
        "receive_and_settle": receive_and_settle,
        "concurrency_keys": concurrency_keys,
        "gauges": gauges,
        "configure": configure,
    }
    options = TracingOptions.parse("instrument()", given)
    instrument_as(options, tracer_provider=tracer_provider, meter_provider=meter_provider)


def instrument_as(options: TracingOptions, **providers: Any) -> None:
    """Do what ``instrument()`` does, with options that are valid."""
    uninstrument()
    telemetry = Telemetry(**providers)
    parts = _Parts(
        Tracing(telemetry, options),
        Clients(telemetry, options),
        Processes(telemetry, options, options.load_configure("STEADY_QUEUE_OPENTELEMETRY")),
    )
    install(parts.tracing)
    parts.clients.connect()
    parts.processes.connect()
    _installed.append(parts)


def uninstrument() -> None:
    """Make no more spans and metrics."""
    while _installed:
        parts = _installed.pop()
        uninstall(parts.tracing)
        parts.clients.disconnect()
        parts.processes.disconnect()
