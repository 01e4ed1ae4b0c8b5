"""Traces and metrics of a queue, by OpenTelemetry. Needs the extra ``otel``.

Add ``"steady_queue_core.contrib.opentelemetry"`` to ``INSTALLED_APPS``, or call ``instrument()``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .instrumentation import instrument, uninstrument

__all__ = ["instrument", "uninstrument"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        # Later: Django imports this package for its app before there are models.
        from . import instrumentation

        return getattr(instrumentation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
