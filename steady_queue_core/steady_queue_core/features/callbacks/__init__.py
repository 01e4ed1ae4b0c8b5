"""Callbacks: the tasks that are enqueued with the outcome of a job."""

from __future__ import annotations

from .options import OPTIONS

__all__ = ["OPTIONS"]
