"""Whether calls may be enqueued, or the queue is too long already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ...compat import Task
from ...errors import QueueFull
from ...logging import running_task
from ...timezones import to_utc
from .lengths import Full, Wanted
from .options import OPTION, QueueLimits

#: Takes room in all queues, or returns one that is full.
Take = Callable[[Sequence[Wanted]], Full | None]


class Newcomer(NamedTuple):
    """A call that is about to be stored."""

    task: Task
    #: Whether its job waits for other jobs first.
    waits: bool = False

    @property
    def is_ready(self) -> bool:
        """Whether its job is ready at once, by the clock of this process."""
        if self.waits or getattr(self.task, "delay", None):
            return False
        run_after = self.task.run_after
        return run_after is None or to_utc(run_after) <= datetime.now(UTC)


class Admission:
    """What a backend with limits asks before it stores calls from outside. What jobs enqueue while
    they run is work that was admitted with them."""

    def __init__(self, alias: str, limits: QueueLimits) -> None:
        self._alias, self._limits = alias, limits

    def require_room(self, newcomers: Sequence[Newcomer], take: Take) -> None:
        """Take room for jobs in their queues; raise ``QueueFull`` if one of these is full."""
        if running_task.get() is not None:
            return
        wanted = self._wanted(newcomers)
        if wanted and (full := take(wanted)) is not None:
            raise self._error(full, newcomers)

    def _wanted(self, newcomers: Iterable[Newcomer]) -> list[Wanted]:
        jobs = Counter[str]()
        for each in newcomers:
            jobs[each.task.queue_name] += each.is_ready
        limits = {name: self._limits.of(name) for name in jobs}
        return [
            Wanted(name, jobs[name], limit) for name, limit in limits.items() if limit is not None
        ]

    def _error(self, full: Full, newcomers: Sequence[Newcomer]) -> QueueFull:
        name, jobs, limit = full.wanted
        calls = [each.task for each in newcomers if each.task.queue_name == name]
        length = min(full.length, limit)
        some = f"{'at least ' if length == limit else ''}{length:,} ready job{'s'[: length != 1]}"
        what, more = f"{calls[0].module_path} was", ""
        if len(newcomers) > 1:
            what, more = f"{len(newcomers):,} calls were", f", {len(calls):,} of them are for it"
        mend = "Try again later, let more workers serve it, or raise the limit."
        if jobs > limit:
            mend = "So many at once never fit: enqueue them in smaller parts, or raise the limit."
        return QueueFull(
            f"{what} not enqueued: the queue {name!r} has {some}{more}, and its limit in "
            f"TASKS[{self._alias!r}]['OPTIONS'][{OPTION!r}] is {limit:,}. {mend}",
            queue_name=name,
            length=length,
            limit=limit,
        )
