"""Endings that a task chooses: how often its job may come back."""

from __future__ import annotations

from .options import OPTIONS

__all__ = ["OPTIONS"]
