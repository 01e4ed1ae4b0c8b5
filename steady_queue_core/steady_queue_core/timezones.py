"""Instants as Django shows them, under either ``USE_TZ``; inside the queue all are UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from django.conf import settings
from django.utils import timezone


def from_utc(value: datetime) -> datetime:
    """Return an instant as the project sees it: aware, or naive local time without USE_TZ."""
    if settings.USE_TZ:
        return value
    return timezone.make_naive(value, timezone.get_default_timezone())


def to_utc(value: datetime) -> datetime:
    """Return an instant given by the project as aware, in UTC."""
    if timezone.is_naive(value):
        value = timezone.make_aware(value, timezone.get_default_timezone())
    return value.astimezone(UTC)
