"""What both demos have in common: a project for a time, what it prints, and how it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TypeVar

from django.core.exceptions import ImproperlyConfigured

from ..printable import printable_lines
from .interruption import interrupt_at_signals
from .project import Project

P = TypeVar("P", bound=Project)

#: The shell's exit status for a program that Ctrl-C ended.
INTERRUPTED = 130

NO_FORK = (
    "this system cannot fork processes, which the queue's supervisor does. Linux, macOS and the "
    "BSDs can."
)


class Refused(Exception):
    """The demo cannot begin; the text says why, and what to do."""


def perform(
    begin: Callable[[], P], act: Callable[[P], int], *, keep: bool, when_interrupted: str = ""
) -> int:
    """Make the project that ``begin`` returns, ``act`` in it, and delete it unless it is to be
    kept; return the exit status."""
    if not hasattr(os, "fork"):
        return refuse(NO_FORK)
    interrupt_at_signals()
    project: P | None = None
    try:
        project = begin()
        from .. import compat  # noqa: F401  (its import says whether there is a task framework)

        project.make()
        project.enter()
        return act(project)
    except (ImproperlyConfigured, Refused) as error:
        return refuse(str(error))
    except KeyboardInterrupt:
        if when_interrupted:
            print(when_interrupted, file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        discard_output()
        return 1
    finally:
        if project is not None and (told := project.end(keep=keep)):
            say_if_heard(told)


def say(text: str) -> None:
    """Print ``text``."""
    print(printable_lines(text), flush=True)


def say_if_heard(text: str) -> None:
    """Print ``text``, unless the terminal is closed or the reader of a pipe is gone."""
    try:
        say(text)
    except OSError:
        discard_output()


def refuse(reason: str) -> int:
    """Print why the demo cannot go on; return its exit status."""
    print(printable_lines(f"steady-queue demo: {reason}"), file=sys.stderr)
    return 1


def discard_output() -> None:
    """Print no more: Python would complain when it flushes the output at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
