"""The documented address of ``recurring``."""

from __future__ import annotations

from .schedules.definition import recurring

__all__ = ["recurring"]
