"""The PostgreSQL dialect of Steady Queue: not available in this version."""

from __future__ import annotations

__version__ = "0.1.0"
