"""Formats stored values, whatever they contain, as text for a page."""

from __future__ import annotations

from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString

from ..dialects import portable
from ..listings.wording import MOST_NAME, MOST_TEXT, between, clean, duration, line, moment, name
from ..progress import Progress

#: Maximum length of a title.
MOST_TITLE = 1_000

__all__ = [
    "MOST_NAME",
    "MOST_TEXT",
    "ago",
    "between",
    "clean",
    "dated",
    "duration",
    "line",
    "moment",
    "name",
    "named",
    "progress",
    "short_path",
]


def short_path(path: str) -> SafeString:
    """Return the last part of a task's path, with the full path as its title."""
    return format_html('<span title="{}">{}</span>', clean(path), name(path.rpartition(".")[2]))


def named(value: object) -> SafeString:
    """Return a name for a list, where it is cut to the width of its column: its title has all."""
    text = str(value)
    return format_html('<span title="{}">{}</span>', clean(text, MOST_TITLE), name(text))


def dated(words: str, instant: datetime | None) -> SafeString:
    """Return words with the timestamp that they refer to as their title."""
    return format_html('<span title="{}">{}</span>', moment(instant), words)


def ago(instant: datetime | None, present: datetime | None) -> str:
    """Return how long ago a timestamp is, with the timestamp as title; or the timestamp, if the
    present time is not known."""
    if instant is None or present is None:
        return moment(instant)
    if portable.aware(instant) > portable.aware(present):
        return dated(f"in {between(present, instant)}", instant)
    return dated(f"{between(instant, present)} ago", instant)


def progress(told: Progress | None) -> str:
    """Return a bar and the words of a task about its progress; nothing if it has told none."""
    if told is None:
        return ""
    words = clean(told)
    if told.fraction is None:
        return words
    return format_html('<progress max="1" value="{}"></progress> {}', f"{told.fraction:.4f}", words)
