"""Turning reports to Sentry on and off."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.exceptions import ImproperlyConfigured

try:
    import sentry_sdk  # noqa: F401  # To see whether it is there.
except ImportError as error:
    raise ImproperlyConfigured(
        "steady_queue_core.contrib.sentry needs the package sentry-sdk: "
        "pip install 'steady-queue-core[sentry]'"
    ) from error

from ...middleware import install, uninstall
from . import log_records, own_frames
from .middleware import Reporting
from .options import SentryOptions
from .receivers import Receivers


@dataclass(frozen=True)
class _Parts:
    """What is around the queue."""

    reporting: Reporting
    receivers: Receivers


_installed: list[_Parts] = []


def install_as(options: SentryOptions) -> None:
    """Report from now on, in this process and in those that it forks. What was installed before is
    replaced."""
    remove()
    if not options.enabled:
        return
    parts = _Parts(Reporting(options), Receivers(options))
    install(parts.reporting)
    parts.receivers.connect()
    log_records.leave_out()
    own_frames.leave_out_variables()
    _installed.append(parts)


def remove() -> None:
    """Report nothing more."""
    while _installed:
        parts = _installed.pop()
        uninstall(parts.reporting)
        parts.receivers.disconnect()
        log_records.let_in()
