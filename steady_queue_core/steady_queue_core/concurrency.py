"""Concurrency limits, at their public address."""

from __future__ import annotations

from .features.concurrency.limit import ConcurrencyLimit as ConcurrencyLimit
from .features.concurrency.limit import limits_concurrency as limits_concurrency
