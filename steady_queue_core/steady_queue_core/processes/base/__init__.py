"""What workers, dispatchers, schedulers and supervisors have in common."""

from __future__ import annotations
