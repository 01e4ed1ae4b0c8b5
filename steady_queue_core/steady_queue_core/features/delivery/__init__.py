"""Delivery: what becomes of a job that was interrupted, and when its task takes effect."""

from __future__ import annotations

from .options import OPTIONS

__all__ = ["OPTIONS"]
