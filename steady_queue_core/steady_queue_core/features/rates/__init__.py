"""Rate limits: how many jobs that share a key may start in a period."""

from __future__ import annotations
