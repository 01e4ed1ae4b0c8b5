"""Cron schedules: the runs of a cron expression in a time zone.

An expression has the five fields of cron (minute, hour, day of month, month, day of week), or is
one of ``@hourly``, ``@daily``, ``@midnight``, ``@weekly``, ``@monthly``, ``@yearly``,
``@annually``; ``steady_queue_core.schedules.cron_fields`` describes the fields. A time zone may
follow: ``0 9 * * * Europe/Berlin``. It is evaluated in the schedule's own time zone. When the
clocks there change:

- **A fixed time** (the hour field does not begin with ``*``: ``30 2 * * *``) runs exactly once on
  each local day. A skipped time runs at the first instant after the gap, usually 03:00; an
  ambiguous time runs the first time. Times that fall on the same instant are one run, and a date
  that the zone skips has no run.
- **Every hour or every n hours** (the hour field begins with ``*``) runs whenever local time
  matches: not within a gap, and in both passes of a repeated hour.

This is the rule of Debian's cron, except that the minute field does not matter here.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings

from .cron_dates import NoDateError, dates_of
from .cron_fields import Fields
from .local_time import first_change, instant_of, to_local

LONGEST_EXPRESSION = 200
NAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


class InvalidScheduleError(ValueError):
    """A cron expression or its time zone cannot be used."""


@dataclass(frozen=True)
class Schedule:
    """A cron expression in a time zone.

    Raises InvalidScheduleError when the expression is malformed or never matches a date, or the
    zone is unknown.
    """

    expression: str
    """Five fields separated by single blanks, or an ``@`` name; as an argument, a time zone may
    follow, in place of ``timezone_name``."""
    timezone_name: str = ""
    """Name in the IANA database, such as ``Europe/Berlin``; empty: ``settings.TIME_ZONE``."""

    def __post_init__(self) -> None:
        expression, zone = split_zone(self.expression)
        if zone and self.timezone_name not in ("", zone):
            raise InvalidScheduleError(
                f"the cron expression {self.expression!r} names a time zone, and "
                f"{self.timezone_name!r} is given as well; leave one of them out"
            )
        object.__setattr__(self, "expression", _checked_expression(expression))
        name = zone or self.timezone_name or settings.TIME_ZONE or "UTC"
        object.__setattr__(self, "timezone_name", _checked_zone(name))

    @property
    def fields(self) -> list[str]:
        """The five fields; an ``@`` name is expanded."""
        return _written_out(self.expression).split(" ")

    @property
    def takes_either_day(self) -> bool:
        """Whether both day fields are restricted, so that a day that matches one is enough."""
        return Fields.parse(_written_out(self.expression)).takes_either_day

    def next_after(self, instant: datetime) -> datetime:
        """Return the first run after ``instant``, in UTC.

        Raises ValueError for a naive datetime.
        """
        if instant.tzinfo is None:
            raise ValueError(f"next_after() needs an aware datetime, not {instant!r}")
        instant = instant.astimezone(UTC)
        if self.fields[1].startswith("*"):
            return self._next_shown(instant, ZoneInfo(self.timezone_name))
        return self._next_fixed(instant, ZoneInfo(self.timezone_name))

    def _next_fixed(self, instant: datetime, zone: ZoneInfo) -> datetime:
        local = to_local(instant, zone)
        while True:
            local = self._next_local(local)
            run = instant_of(local, zone)
            if run is not None and run > instant:
                return run

    def _next_shown(self, instant: datetime, zone: ZoneInfo) -> datetime:
        # Between two changes of the clocks, local time is UTC plus a constant.
        local = to_local(instant, zone)
        offset = local - instant.replace(tzinfo=None)
        while True:
            run = (self._next_local(local) - offset).replace(tzinfo=UTC)
            change = first_change(instant, run, zone)
            if change is None:
                return run
            instant, local = change, to_local(change, zone)
            offset = local - instant.replace(tzinfo=None)
            local -= timedelta(seconds=1)  # the moment of the change itself may match

    def _next_local(self, local: datetime) -> datetime:
        """Return the next matching time on a clock that is never adjusted."""
        return dates_of(_written_out(self.expression)).next_after(local)


def split_zone(expression: str) -> tuple[str, str]:
    """Return a cron expression without the time zone at its end, and that zone or an empty string.

    A last word that is neither a field nor looks like a zone stays in the expression.
    """
    parts = expression.split() if isinstance(expression, str) else []
    if len(parts) > 1 and _looks_like_zone(parts[-1]):
        return " ".join(parts[:-1]), parts[-1]
    return expression, ""


def _looks_like_zone(word: str) -> bool:
    area, _, place = word.partition("/")
    if area.isalpha() and place[:1].isalpha():
        return True  # Perhaps misspelt: an error about it says more than one about fields.
    try:
        return word[:1].isalpha() and bool(ZoneInfo(word))
    except (KeyError, ValueError, OSError):
        return False


def _written_out(expression: str) -> str:
    return NAMES.get(expression, expression)


def _checked_expression(expression: object) -> str:
    if not isinstance(expression, str):
        raise InvalidScheduleError(
            f"a schedule is a cron expression, not {type(expression).__name__}"
        )
    if len(expression) > LONGEST_EXPRESSION:
        raise InvalidScheduleError(
            f"the cron expression has {len(expression)} characters, "
            f"at most {LONGEST_EXPRESSION} are allowed"
        )
    parts = expression.split()
    text = " ".join(parts)
    if not expression.isascii() or not text.isprintable():
        raise InvalidScheduleError(
            f"the cron expression {text!r} has characters that cron does not know"
        )
    if len(parts) == 1 and text.startswith("@"):
        text = text.lower()
        if text == "@reboot":
            raise InvalidScheduleError(
                "@reboot is not a time: it says nothing about when to run next"
            )
        if text not in NAMES:
            raise InvalidScheduleError(
                f"the cron expression {text!r} is not usable: there are {', '.join(NAMES)}"
            )
    elif len(parts) != 5:
        raise InvalidScheduleError(
            f"the cron expression {text!r} has {len(parts)} fields; five are needed: minute, hour, "
            "day of month, month, day of week (there is no field for seconds or years; a time zone "
            "may follow)"
        )
    try:
        dates_of(_written_out(text))
    except NoDateError as error:
        raise InvalidScheduleError(f"the cron expression {text!r} matches no date") from error
    except ValueError as error:
        raise InvalidScheduleError(
            f"the cron expression {text!r} is not usable: {error}"
        ) from error
    return text


def _checked_zone(name: object) -> str:
    try:
        if not isinstance(name, str):
            raise TypeError(f"a name is needed, such as 'Europe/Berlin', not {type(name).__name__}")
        ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError) as error:
        near = difflib.get_close_matches(str(name), available_timezones(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidScheduleError(f"the time zone {name!r} is not known{hint}") from error
    return name
