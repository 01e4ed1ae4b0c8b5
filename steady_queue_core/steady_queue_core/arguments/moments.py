"""Points in time as text: ``datetime`` and ``time``, with zone and fold.

ISO 8601 says all there is to say about most of them. A zone of :mod:`zoneinfo` is stored by
its key, and a fold of 1 by its number; then the form is ``[text, key or null, fold]``.
"""

from __future__ import annotations

import re
from datetime import datetime, time, tzinfo
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

Moment = TypeVar("Moment", datetime, time)

_ZONE_KEY = re.compile(r"[A-Za-z0-9_+-]{1,40}(?:/[A-Za-z0-9_+-]{1,40}){0,3}")


def store(kind: type[Moment], value: Moment) -> str | list[Any]:
    """Return the stored form of ``value``, an instance of ``kind`` or of a subclass.

    :raises ValueError: the zone of ``value`` is neither from zoneinfo nor gives an offset
    """
    zone = value.tzinfo
    key = _key_of(zone)
    if key is not None:
        value = kind.replace(value, tzinfo=None)
    elif zone is not None and kind.utcoffset(value) is None:
        raise ValueError("the zone gives no offset")
    text = kind.isoformat(value)
    return [text, key, value.fold] if key or value.fold else text


def read(kind: type[Moment], stored: Any) -> Moment:
    """Return what :func:`store` stored.

    :raises ValueError: ``stored`` is no moment, or its zone is unknown here
    :raises TypeError: ``stored`` has another form
    """
    if type(stored) is not list:
        return kind.fromisoformat(stored)
    text, key, fold = stored
    value = kind.fromisoformat(text)
    if key is not None:
        value = value.replace(tzinfo=_zone(key))
    return value.replace(fold=fold)


def _key_of(zone: tzinfo | None) -> str | None:
    if not isinstance(zone, ZoneInfo) or not zone.key or not _ZONE_KEY.fullmatch(zone.key):
        return None
    return zone.key


def _zone(key: str) -> ZoneInfo:
    # The pattern keeps a key from leaving the time zone data: it becomes a file's path.
    if not _ZONE_KEY.fullmatch(key):
        raise ValueError("not the key of a time zone")
    try:
        return ZoneInfo(key)
    except (LookupError, OSError) as error:
        raise ValueError("no such time zone") from error
