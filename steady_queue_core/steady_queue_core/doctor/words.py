"""Numbers of things in a sentence, and commands in a remedy."""

from __future__ import annotations

from shlex import quote

from ..listings.counts import BoundedCount
from ..listings.wording import name


def many(number: int | BoundedCount, one: str, more: str = "") -> str:
    """Return a number with the words for ``one`` or ``more`` such things."""
    count = number if isinstance(number, BoundedCount) else BoundedCount(number)
    words = one if count.exact and count.number == 1 else more or f"{one}s"
    return f"{count.text} {words}"


def path_of(error: type[BaseException]) -> str:
    """Return what failed jobs have as the class of such an error."""
    return f"{error.__module__}.{error.__qualname__}"


def command(*arguments: object) -> str:
    """Return a command line that can be pasted, whatever is in its arguments."""
    quoted = (quote(name(each)) for each in arguments)
    return " ".join(("python manage.py steady_queue", *quoted))
