"""What runs and is blocked in each queue and process, and which queues are paused."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connections

from ..listings.counts import CAP, stored_instant
from ..listings.damage import ERRORS, is_damage
from ..models import BlockedExecution, ClaimedExecution, Pause
from .statement import rows_of

RUNNING, BLOCKED, PAUSED = 0, 1, 2


@dataclass
class Busy:
    """Counts of as many rows of each state as are counted."""

    #: Claimed jobs by process, and by queue.
    by_process: Counter[int] = field(default_factory=Counter)
    running: Counter[str] = field(default_factory=Counter)
    blocked: Counter[str] = field(default_factory=Counter)
    #: Since when queues are paused; ``None``: not known.
    paused: dict[str, datetime | None] = field(default_factory=dict)
    #: Whether these are all claimed, and all blocked jobs.
    all_running: bool = True
    all_blocked: bool = True

    @classmethod
    def of(cls, using: str) -> Busy:
        """Look at a database: one query."""
        found = cls()
        for row in _rows(using):
            found._add(using, *row)
        found.all_running = found.running.total() <= CAP
        found.all_blocked = found.blocked.total() <= CAP
        return found

    def _add(self, using: str, what: int, process: Any, queue: str, number: int, at: Any) -> None:
        if what == RUNNING:
            self.by_process[process] += number
            self.running[queue] += number
        elif what == BLOCKED:
            self.blocked[queue] += number
        else:
            self.paused[queue] = _instant(using, at)


def _rows(using: str) -> list[tuple[Any, ...]]:
    claims = ClaimedExecution.objects.using(using).order_by()
    blocked = BlockedExecution.objects.using(using).order_by()
    pauses = Pause.objects.using(using).order_by("queue_name")
    parts = [
        (
            f"SELECT {RUNNING}, process_id, queue_name, COUNT(*), MIN(created_at) FROM {{rows}} "
            "GROUP BY process_id, queue_name",
            claims.values("process_id", "queue_name", "created_at"),
        ),
        (
            f"SELECT {BLOCKED}, 0, queue_name, COUNT(*), MIN(created_at) FROM {{rows}} "
            "GROUP BY queue_name",
            blocked.values("queue_name", "created_at"),
        ),
        (
            f"SELECT {PAUSED}, 0, queue_name, 1, created_at FROM {{rows}}",
            pauses.values("queue_name", "created_at"),
        ),
    ]
    try:
        return rows_of(using, parts, CAP + 1)
    except ERRORS as error:
        if not is_damage(error):
            raise
        return []


def _instant(using: str, value: Any) -> datetime | None:
    try:
        return stored_instant(connections[using], value)
    except ERRORS as error:
        if not is_damage(error):
            raise
        return None
