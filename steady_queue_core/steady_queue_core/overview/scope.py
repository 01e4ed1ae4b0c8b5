"""Scope: which database, time, queue and task a page is about."""

from __future__ import annotations

from dataclasses import dataclass

from .window import HOUR, Window


@dataclass(frozen=True)
class Scope:
    """What an overview is of; an empty name stands for all queues, or all tasks."""

    using: str
    window: Window = HOUR
    queue: str = ""
    task: str = ""

    @property
    def is_narrow(self) -> bool:
        """Whether it leaves anything out."""
        return bool(self.queue or self.task)

    def has(self, queue: str, task: str) -> bool:
        """Whether a queue and task are in the scope."""
        return self.has_queue(queue) and (not self.task or task == self.task)

    def has_queue(self, queue: str) -> bool:
        """Whether a queue is in the scope."""
        return not self.queue or queue == self.queue
