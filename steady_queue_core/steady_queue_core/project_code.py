"""Calling code of the project: keys, back-offs, receivers, hooks, middleware. Whatever it raises
ends what it was called for, and no more."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Interruption(BaseException):
    """Raised by the queue itself to end what a thread of its own does."""


class ProjectCodeError(Exception):
    """Code of the project has raised something that would end a thread, a loop or a process."""


def contained(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what ``function``, of the project or with code of the project in it, returns.

    What it raises that is no ``Exception``, such as ``SystemExit``, is raised as
    ``ProjectCodeError``, which names the place.
    """
    try:
        return function(*args, **kwargs)
    except Exception:
        raise
    except BaseException as error:
        if is_meant_for_us(error):
            raise
        raise ProjectCodeError(f"{_place_of(error)} raised {type(error).__name__}") from error


def text_of(error: BaseException) -> str:
    """Return what an exception says, whatever its methods do."""
    try:
        # str() may return a subclass of str that overrides any method.
        return str.__str__(str(error))
    except BaseException as problem:
        return f"<str() of the exception failed with {type(problem).__name__}>"


def is_meant_for_us(error: BaseException) -> bool:
    """Whether an exception asks the calling thread to end, rather than being a matter of the code
    that raised it."""
    if isinstance(error, KeyboardInterrupt):
        # Ctrl-C in a process of the project; processes of the queue have a handler of their own.
        is_main = threading.current_thread() is threading.main_thread()
        return is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return isinstance(error, Interruption)


def _place_of(error: BaseException) -> str:
    """Return where an exception was raised."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return "Code of the project"
    code, module = traceback.tb_frame.f_code, traceback.tb_frame.f_globals.get("__name__", "?")
    return f"{module}.{code.co_qualname}, line {traceback.tb_lineno},"
