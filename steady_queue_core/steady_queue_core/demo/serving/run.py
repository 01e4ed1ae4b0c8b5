"""Runs the queue and the admin of a made-up shop until somebody ends it."""

from __future__ import annotations

import math
import os
import sys
import time

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError

from ...printable import printable_lines
from ..interruption import asking, interrupt_at_signals, raise_if_asked
from ..supervision import Supervision
from .project import Shop
from .server import ADDRESS, PortUnavailable, Server

#: Seconds between two looks at what is due, and whether all parts are alive.
PERIOD = 0.25
#: How many steps of the load may fail in succession: the database may be busy.
MOST_FAILURES = 20
#: The shell's exit status for a program that Ctrl-C ended.
INTERRUPTED = 130

NO_FORK = (
    "this system cannot fork processes, which the queue's supervisor does. Linux, macOS and the "
    "BSDs can."
)


class PartEnded(Exception):
    """Something without which the demo cannot go on has ended by itself; the text says what."""


def serve(*, keep: bool, port: int, seconds: float | None) -> int:
    """Serve until a signal, or for so many seconds. Return 0, or 1 if it ended otherwise.

    Without a ``port``, 0, a free one is used.
    """
    if not hasattr(os, "fork"):
        return _refuse(NO_FORK)
    interrupt_at_signals()
    try:
        server = Server(port)
    except PortUnavailable as error:
        return _refuse(str(error))
    project = Shop(server.server_port)
    try:
        from ... import compat  # noqa: F401  (its import says whether there is a task framework)

        project.make()
        project.enter()
        return _serve(project, server, math.inf if seconds is None else seconds)
    except ImproperlyConfigured as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        _say(project.end(keep=keep))


def _serve(project: Shop, server: Server, seconds: float) -> int:
    # These need the project's settings.
    from .link import LINK

    with Supervision(project) as supervision:
        supervision.await_worker()
        with server:
            url = f"http://{ADDRESS}:{server.server_port}/login/{LINK.token}/"
            try:
                with asking():
                    _say(f"\n  The admin, with a login that works once:\n\n    {url}\n")
                    _say("  Ctrl-C ends the demo and deletes its project.")
                    _go_on(supervision, server, seconds)
            except PartEnded as error:
                return _tell(project, error)
            except KeyboardInterrupt:
                pass
            _say("\n  The demo ends.")
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


def _tell(project: Shop, error: PartEnded) -> int:
    _refuse(f"a part of the demo has ended by itself: {error}. The processes wrote:")
    for line in project.supervisor_log.read_text(errors="replace").splitlines()[-40:]:
        print(printable_lines(f"    {line}"), file=sys.stderr)
    return 1


def _refuse(reason: str) -> int:
    print(printable_lines(f"steady-queue demo: {reason}"), file=sys.stderr)
    return 1


def _say(text: str) -> None:
    if text:
        try:
            print(printable_lines(text), flush=True)
        except OSError:
            # The terminal is closed, or the reader of a pipe is gone. Python would complain when
            # it flushes the output at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
