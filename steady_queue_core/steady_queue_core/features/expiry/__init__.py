"""Expiry: a job that has not started by then never starts."""

from __future__ import annotations

from .options import OPTIONS

__all__ = ["OPTIONS"]
