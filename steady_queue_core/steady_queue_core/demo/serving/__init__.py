"""``steady-queue demo --serve``: a made-up shop with a steady load, and its admin in a browser."""

from __future__ import annotations

from .run import serve

__all__ = ["serve"]
