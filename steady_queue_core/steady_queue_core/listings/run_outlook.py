"""What is ahead of a recurring task, as far as its row tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..dialects import portable
from ..models import RecurringTask
from ..schedules import catch_up
from ..schedules.span import Span, policy_for
from ..schedules.stored import stored_schedule


@dataclass(frozen=True)
class Outlook:
    """The next runs of a task; none if it is disabled or its row is unreadable."""

    next_runs: list[datetime] = field(default_factory=list)
    #: Whether there will be none, however long one waits.
    is_finished: bool = False


def outlook_of(
    row: RecurringTask, last_run: datetime | None, present: datetime, count: int
) -> Outlook:
    """Return what is ahead of a task, with at most ``count`` runs."""
    try:
        runs = _ahead(row, last_run, present, count)
    except Exception:  # No manual edit of the row may break the page.
        return Outlook()
    return Outlook(runs if row.enabled else [], is_finished=not runs)


def expected_after(row: RecurringTask, last_run: datetime | None) -> datetime | None:
    """Return the run that follows the last one, and may be overdue; ``None`` if there is none, or
    the row is unreadable."""
    try:
        span = Span(
            stored_schedule(row.schedule, row.timezone), _aware(row.starts_at), _aware(row.ends_at)
        )
        known = [portable.aware(each) for each in (last_run, row.active_since) if each is not None]
        is_over = not row.enabled or row.runs_left == 0 or not known
        return None if is_over else span.next_after(max(known))
    except Exception:  # No manual edit of the row may matter.
        return None


def _ahead(
    row: RecurringTask, last_run: datetime | None, present: datetime, count: int
) -> list[datetime]:
    schedule = stored_schedule(row.schedule, row.timezone)
    span = Span(schedule, _aware(row.starts_at), _aware(row.ends_at))
    if row.runs_left is not None:
        count = min(count, row.runs_left)
    found: list[Any] = [span.next_after(present)]
    if found == [None]:
        found = [_outstanding(row, span, last_run, present)]
    while None not in found and len(found) < count:
        found.append(span.next_after(found[-1]))
    return [run for run in found[:count] if run is not None]


def _outstanding(
    row: RecurringTask, span: Span, last_run: datetime | None, present: datetime
) -> datetime | None:
    """Return a run that is past, but waits or would be made up for."""
    if row.overlap == "queue" and row.waiting_at is not None:
        return portable.aware(row.waiting_at)
    known = [portable.aware(each) for each in (last_run, row.active_since) if each is not None]
    policy = policy_for(span.schedule, catch_up.from_text(row.catch_up))
    return span.following(policy, max(known), present) if known else None


def _aware(stored: datetime | None) -> datetime | None:
    return stored and portable.aware(stored)
