"""Time limits: how long an attempt may take, and how long it may still run after that."""

from __future__ import annotations

from .options import OPTIONS

__all__ = ["OPTIONS"]
