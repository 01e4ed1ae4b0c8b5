"""Where pickles of tasks, which caches may hold, have their rate limits."""

from __future__ import annotations

from ..features.rates.limit import RateLimit as RateLimit
