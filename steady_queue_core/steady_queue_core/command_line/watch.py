"""``watch``: the status, again and again."""

from __future__ import annotations

import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connections
from django.utils import timezone

from ..errors import SteadyQueueError
from ..listings.wording import moment
from ..printable import printable
from .context import Context
from .databases import headings
from .exit_codes import DONE, Refusal
from .formats import positive_option
from .status import Snapshot
from .subcommand import Subcommand


class Watch(Subcommand):
    """The status until Ctrl-C: in place on a terminal with ``rich``, else one after the other."""

    name = "watch"
    help = "show the status again and again, until Ctrl-C"
    prints_json = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--interval", type=_seconds, default=2.0, metavar="SECONDS", help="between two (2)"
        )
        parser.add_argument(
            "--times", type=positive_option, metavar="N", help="end after so many looks"
        )

    def run(self, context: Context) -> int:
        databases = context.databases.to_read()
        screen = _screen() if context.stdout.isatty() else None
        looks = 0
        try:
            with screen or _Plain(context) as view:
                while True:
                    view.update("\n".join(map(printable, _lines(databases))), refresh=True)
                    looks += 1
                    if looks == context.options["times"]:
                        return DONE
                    time.sleep(context.options["interval"])
        except KeyboardInterrupt:
            return DONE


class _Plain:
    """Prints each look below the one before."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def __enter__(self) -> _Plain:
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave what was printed."""

    def update(self, text: str, *, refresh: bool) -> None:
        for line in (*text.split("\n"), ""):
            self._context.say(line)
        self._context.flush()


def _screen() -> Any:
    """Return a live view of ``rich``, or ``None`` if that is not installed."""
    try:
        from rich.live import Live
        from rich.text import Text
    except ImportError:
        return None

    class Screen(Live):
        """Takes text without markup."""

        def update(self, renderable: Any, *, refresh: bool = False) -> None:
            super().update(Text(renderable), refresh=refresh)

    return Screen(Text(""), auto_refresh=False, screen=True)


def _lines(databases: list[str]) -> Iterator[str]:
    yield moment(timezone.now())
    for using, heading in headings(databases):
        yield from heading
        try:
            yield from Snapshot.of(using).lines()
        except (SteadyQueueError, Refusal, ImproperlyConfigured) as error:
            yield str(error)
        except (DatabaseError, InterfaceError) as error:
            yield f"The database reports an error: {str(error).strip()}"
            connections[using].close()


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0.1 <= found <= 3600:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 3600")
    return found
