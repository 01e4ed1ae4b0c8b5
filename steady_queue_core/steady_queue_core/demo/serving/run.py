"""Runs the queue and the admin of a made-up shop until somebody ends it."""

from __future__ import annotations

import math
import sys
import time
from contextlib import closing

from django.db import DatabaseError

from ...printable import printable_lines
from ..interruption import asking, raise_if_asked
from ..performance import perform, refuse, say_if_heard
from ..supervision import Supervision
from .project import Shop
from .server import ADDRESS, Server

#: Seconds between two looks at what is due, and whether all parts are alive.
PERIOD = 0.25
#: How many steps of the load may fail in succession: the database may be busy.
MOST_FAILURES = 20


class PartEnded(Exception):
    """Something without which the demo cannot go on has ended by itself; the text says what."""


def serve(*, keep: bool, port: int, seconds: float | None) -> int:
    """Serve until a signal, or for so many seconds. Return 0, or 1 if it ended otherwise.

    Without a ``port``, 0, a free one is used.
    """
    end = math.inf if seconds is None else seconds
    return perform(lambda: Shop(Server(port)), lambda shop: _serve(shop, end), keep=keep)


def _serve(shop: Shop, seconds: float) -> int:
    # These need the project's settings.
    from .link import LINK

    with closing(Supervision(shop)) as supervision:
        supervision.await_worker()
        with shop.server.answering():
            url = f"http://{ADDRESS}:{shop.server.server_port}/login/{LINK.token}/"
            try:
                with asking():
                    say_if_heard(f"\n  The admin, with a login that works once:\n\n    {url}\n")
                    say_if_heard("  Ctrl-C ends the demo and deletes its project.")
                    _go_on(supervision, shop.server, seconds)
            except PartEnded as error:
                return _tell(shop, error)
            except KeyboardInterrupt:
                pass
            say_if_heard("\n  The demo ends.")
    return 0


def _go_on(supervision: Supervision, server: Server, seconds: float) -> None:
    """Enqueue jobs until it is time to end."""
    from .load import Load

    end = time.monotonic() + seconds
    load, failures = Load(time.monotonic()), 0
    while (now := time.monotonic()) < end:
        raise_if_asked()
        if supervision.exit_code is not None:
            raise PartEnded(f"the supervisor, with exit status {supervision.exit_code}")
        if not server.is_alive:
            raise PartEnded("the web server")
        try:
            load.step(now)
            failures = 0
        except DatabaseError as error:
            failures += 1
            if failures > MOST_FAILURES:
                raise PartEnded(f"the load, since the database does not work: {error}") from error
        time.sleep(min(PERIOD, max(0.0, end - now)))


def _tell(shop: Shop, error: PartEnded) -> int:
    refuse(f"a part of the demo has ended by itself: {error}. The processes wrote:")
    for line in shop.last_written():
        print(printable_lines(f"    {line}"), file=sys.stderr)
    return 1
