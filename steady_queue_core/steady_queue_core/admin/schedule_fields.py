"""The fields of the forms of recurring tasks: what is typed, and what it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import timezone

from ..dialects import is_storable, portable
from ..durations import parse
from ..schedules import policies
from ..schedules.cron import split_zone
from ..schedules.interval import EVERY, Interval
from ..schedules.once import AT
from ..schedules.policies import OVERLAPS, CatchUp
from ..schedules.values import Value
from ..timezones import from_utc

Timing = str | timedelta | datetime


@contextmanager
def refusals() -> Iterator[None]:
    """Have what the API refuses be shown beside the field."""
    try:
        yield
    except (ValueError, TypeError, RecursionError) as error:
        raise ValidationError(in_short(error)) from None


def in_short(error: BaseException, key: str = "") -> str:
    """Return what an error says, without the key that the page names anyway."""
    text = str(error).removeprefix(f"the recurring task {key!r}: ")
    text = text.removeprefix(f"The recurring task {key!r} cannot be run: ")
    return text[:1].upper() + text[1:]


def read_schedule(text: str) -> Timing:
    """Return the schedule that a text says: a cron expression, ``every 90 minutes``, or ``at`` and
    an instant. Raises ValueError."""
    text = read_text(text)
    if text.startswith(EVERY):
        return Interval.read(text).period
    return read_instant(text.removeprefix(AT)) if text.startswith(AT) else text


def read_catch_up(text: str) -> CatchUp:
    """Return the policy about missed runs that a text says. Raises ValueError."""
    try:
        return policies.from_text(text)
    except ValueError:
        return parse(text)


def read_text(text: str) -> str:
    """Return a text. Raises ValueError unless every database stores it."""
    if not is_storable(text):
        raise ValueError("It has a character that no database stores.")
    return text


def read_instant(text: str) -> datetime:
    """Return an instant in ISO 8601; one without a zone is in the current one. Raises
    ValueError."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text!r} is no instant: write it as 2030-12-24 18:00") from None
    if settings.USE_TZ and timezone.is_naive(found):
        return timezone.make_aware(found)
    return found


def shown(stored: Any) -> Any:
    """Return what is in a column as a form shows it: an instant as ``read_instant`` reads it."""
    if not isinstance(stored, datetime):
        return stored
    instant = from_utc(portable.aware(stored))
    return (timezone.localtime(instant) if settings.USE_TZ else instant).isoformat(sep=" ")


def zone_for(schedule: Timing, typed: str) -> str | None:
    """Return the time zone of a schedule: the one that was typed, or that of the project, unless
    the schedule has its own or needs none."""
    if typed:
        return typed
    is_bare = isinstance(schedule, str) and not split_zone(schedule)[1]
    return str(settings.TIME_ZONE) if is_bare else None


class ReadField(forms.CharField):
    """Text, and the value that ``read`` finds in it."""

    def __init__(self, read: Callable[[str], Any], **named: Any) -> None:
        super().__init__(**named)
        self.read = read

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        with refusals():
            return self.read(text) if text else self.empty_value


class JSONField(forms.CharField):
    """A JSON array or object; what was typed is kept, ``None`` if that is nothing."""

    widget = forms.Textarea(attrs={"rows": 3, "cols": 80, "class": "vLargeTextField"})

    def __init__(self, kind: type, **named: Any) -> None:
        super().__init__(required=False, **named)
        self.kind = kind

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text.strip():
            return None
        try:
            found = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise ValidationError(f"This is no JSON: {error}") from None
        if not isinstance(found, self.kind):
            raise ValidationError(f"Write a JSON {'array' if self.kind is list else 'object'}.")
        return found


#: What the values of recurring tasks are typed into.
FIELDS: dict[str, Callable[..., forms.Field]] = {
    "queue_name": partial(forms.CharField, strip=False, max_length=255, empty_value=None),
    "priority": forms.IntegerField,
    "description": partial(ReadField, read_text, max_length=10_000),
    "starts_at": partial(ReadField, read_instant, empty_value=None),
    "ends_at": partial(ReadField, read_instant, empty_value=None),
    "repeats": forms.IntegerField,
    "catch_up": partial(ReadField, read_catch_up),
    "overlap": partial(forms.ChoiceField, choices=[(each, each) for each in OVERLAPS]),
}


def field_of(value: Value) -> forms.Field:
    """Return the field of a value, which is required unless it may be empty."""
    return FIELDS[value.name](
        label=value.label,
        help_text=value.help,
        required=bool(value.default),
        initial=value.default,
    )


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number")
