"""The channel on which ringing is told. It is the database's: whatever the schema."""

from __future__ import annotations

CHANNEL = "steady_queue_ready"
RING = f"pg_notify('{CHANNEL}', '')"
