"""Check-ins of the runs of recurring tasks, by which Sentry notices those that are missing."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sentry_sdk.crons import capture_checkin

from ...schedules.cron import Schedule
from ...schedules.interval import Interval
from . import names

#: Most characters of the name of a monitor.
LONGEST_SLUG = 50
_SLUG = re.compile(r"[a-z0-9_-]{1,50}")
_ID = re.compile(r"[0-9a-f]{32}")
#: What periods are measured in, the longest first.
_UNITS = (
    ("week", timedelta(weeks=1)),
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
)


@dataclass(frozen=True)
class CheckIn:
    """The check-in of one run."""

    slug: str
    check_in_id: str
    config: Mapping[str, Any]

    def send(self, status: str, seconds: float | None = None) -> None:
        """Tell how the run stands: ``"in_progress"``, ``"ok"`` or ``"error"``."""
        config: Any = dict(self.config)
        capture_checkin(
            monitor_slug=self.slug,
            check_in_id=self.check_in_id,
            status=status,
            duration=seconds,
            monitor_config=config,
        )


def headers_of(recurring_task: Any) -> dict[str, str]:
    """Return the headers of a run; none if Sentry cannot watch its schedule."""
    config = config_of(recurring_task.schedule)
    if config is None:
        return {}
    # One check-in for all attempts at the run.
    told = {"slug": slug_of(recurring_task.key), "id": uuid.uuid4().hex, "config": config}
    return {names.MONITOR_HEADER: json.dumps(told)}


def check_in_of(headers: Mapping[str, str]) -> CheckIn | None:
    """Return the check-in in the headers of a job, which nobody has to trust."""
    try:
        told = json.loads(headers.get(names.MONITOR_HEADER, "null"))
    except (ValueError, RecursionError):
        return None
    match told:
        case {"slug": str(slug), "id": str(check_in_id), "config": dict(config)}:
            if _SLUG.fullmatch(slug) and _ID.fullmatch(check_in_id):
                return CheckIn(slug, check_in_id, config)
    return None


def slug_of(key: str) -> str:
    """Return the name of the monitor of a recurring task: its key, as far as Sentry allows it."""
    return re.sub(r"[^a-z0-9_-]+", "-", key.lower())[:LONGEST_SLUG].strip("-") or "task"


def config_of(schedule: Any) -> dict[str, Any] | None:
    """Return what Sentry has to know of a schedule; ``None``: it cannot watch it."""
    if isinstance(schedule, Schedule):
        crontab = {"type": "crontab", "value": " ".join(schedule.fields)}
        return {"schedule": crontab, "timezone": schedule.timezone_name}
    if isinstance(schedule, Interval):
        for unit, length in _UNITS:
            if schedule.period % length == timedelta(0):
                value = schedule.period // length
                return {"schedule": {"type": "interval", "value": value, "unit": unit}}
    return None
