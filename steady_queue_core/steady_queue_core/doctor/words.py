"""Numbers of things in a sentence, and commands in a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from ..configuration.queues import LONGEST_NAME
from ..listings.counts import BoundedCount
from ..printable import printable


def many(number: int | BoundedCount, one: str, more: str = "") -> str:
    """Return a number with the words for ``one`` or ``more`` such things."""
    count = number if isinstance(number, BoundedCount) else BoundedCount(number)
    words = one if count.exact and count.number == 1 else more or f"{one}s"
    return f"{count.text} {words}"


def path_of(error: type[BaseException]) -> str:
    """Return what failed jobs have as the class of such an error."""
    return f"{error.__module__}.{error.__qualname__}"


def command(first: str, *values: object, options: Sequence[str] = ()) -> str:
    """Return a command line that can be pasted, whatever is in its values; ``first`` is a
    subcommand, or an option for the one value."""
    whole = [printable(str(each)[:LONGEST_NAME]) for each in values]
    if not any(each.startswith("-") for each in whole):
        words = [first, *whole, *options]
    elif first.startswith("-"):
        words = ["=".join([first, *whole]), *options]
    else:
        words = [first, *options, "--", *whole]
    return " ".join(("python manage.py steady_queue", *map(quote, words)))
