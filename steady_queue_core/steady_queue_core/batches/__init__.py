"""Batches: jobs that belong together, and what follows when all of them have ended.

As users make and see them; what happens when they end is in ``dialects/joins.py``.
"""

from __future__ import annotations
