"""Loads ``settings.STEADY_QUEUE`` and fills in the defaults."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings

from .errors import ConfigurationError, describe
from .options import SETTING, Options, ResolvedOptions


def load(value: object) -> ResolvedOptions:
    """Check a configuration (None, ``Configuration.Options`` or a dict) and add the defaults.

    Raises ConfigurationError, with every problem of the value in its ``problems``.
    """
    if value is None:
        return Options().resolve()
    if isinstance(value, Options):
        return value.resolve()
    if isinstance(value, Mapping):
        return Options.parse(value, SETTING).resolve()
    raise ConfigurationError(
        f"{SETTING}: expected a Configuration.Options or a dict, got {describe(value)}"
    )


def from_settings() -> ResolvedOptions:
    """Load ``settings.STEADY_QUEUE``; without it, the defaults: one worker and one dispatcher."""
    return load(getattr(settings, SETTING, None))
