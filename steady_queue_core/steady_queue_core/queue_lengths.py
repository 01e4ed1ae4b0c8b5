"""How long the queues are, as far as this process knows: ``forget()`` it between tests."""

from __future__ import annotations

from .features.queue_limits.lengths import forget as forget
