"""Whether calls may be enqueued, or the queue is too long already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from ...compat import Task
from ...errors import QueueFull
from ...logging import running_task
from ...timezones import to_utc
from .lengths import Full, QueueLengths, Wanted, lengths_in
from .options import OPTION, QueueLimits


class NewCall(Protocol):
    """A call that is about to be stored."""

    task: Task
    #: Whether its job waits for other jobs first.
    waits: bool


def require_room(calls: Sequence[NewCall], backend: Any, *, keep: bool = True) -> None:
    """Take room in the queues of calls, and ``keep`` it. Raises ``QueueFull`` if one of these is
    full. What jobs enqueue while they run is work that was admitted with them."""
    limits: QueueLimits | None = backend.settings.queue_limits
    if limits is None or running_task.get() is not None:
        return
    wanted = _wanted(calls, limits)
    # What is in memory is counted in no time.
    lengths = lengths_in(backend.database) if backend.stores_jobs else QueueLengths()
    if full := lengths.take(wanted, backend.count_ready, keep=keep):
        raise _error(full, calls, backend.alias)


def _wanted(calls: Iterable[NewCall], limits: QueueLimits) -> list[Wanted]:
    jobs = Counter[str]()
    for call in calls:
        jobs[call.task.queue_name] += _is_ready(call)
    by_queue = {name: limits.of(name) for name in jobs}
    return [
        Wanted(name, jobs[name], limit) for name, limit in by_queue.items() if limit is not None
    ]


def _is_ready(call: NewCall) -> bool:
    """Whether the job of a call is ready at once, by the clock of this process."""
    if call.waits or getattr(call.task, "delay", None):
        return False
    run_after = call.task.run_after
    return run_after is None or to_utc(run_after) <= datetime.now(UTC)


def _error(full: Full, calls: Sequence[NewCall], alias: str) -> QueueFull:
    name, jobs, limit = full.wanted
    own = [call.task for call in calls if call.task.queue_name == name]
    length = min(full.length, limit)
    some = f"{'at least ' if length == limit else ''}{length:,} ready job{'s'[: length != 1]}"
    what, more = f"{own[0].module_path} was", ""
    if len(calls) > 1:
        what, more = f"{len(calls):,} calls were", f", {len(own):,} of them are for it"
    mend = "Try again later, let more workers serve it, or raise the limit."
    if jobs > limit:
        mend = "So many at once never fit: enqueue them in smaller parts, or raise the limit."
    return QueueFull(
        f"{what} not enqueued: the queue {name!r} has {some}{more}, and its limit in "
        f"TASKS[{alias!r}]['OPTIONS'][{OPTION!r}] is {limit:,}. {mend}",
        queue_name=name,
        length=length,
        limit=limit,
    )
