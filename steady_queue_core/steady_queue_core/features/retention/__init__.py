"""Retention: how long a job that has ended is kept, if its task or its call says so itself."""

from __future__ import annotations

from .options import OPTIONS

__all__ = ["OPTIONS"]
