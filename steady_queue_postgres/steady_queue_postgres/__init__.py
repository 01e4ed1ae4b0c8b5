"""The PostgreSQL dialect of Steady Queue."""

from __future__ import annotations

__version__ = "0.1.0"
