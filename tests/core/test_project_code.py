"""Code of the project that raises what would end a thread, a loop or a process."""

from __future__ import annotations

import signal
import threading
from asyncio import CancelledError
from typing import Any

import pytest
from django.dispatch import Signal

from steady_queue_core.compat import InvalidTask
from steady_queue_core.features.keys import text_of
from steady_queue_core.processes.base.thread_interrupt import TaskInterrupted
from steady_queue_core.project_code import ProjectCodeError, contained
from steady_queue_core.signals import InternalErrors, send

ENDS = [SystemExit, CancelledError, GeneratorExit, type("Strange", (BaseException,), {})]
ERRORS = [*ENDS, KeyboardInterrupt, MemoryError, RecursionError]


def raising(kind: type[BaseException]) -> Any:
    def rude(*args: object, **kwargs: object) -> None:
        raise kind("enough")

    return rude


def in_a_thread(work: Any) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("kind", ENDS)
def test_what_ends_more_than_a_call_is_an_exception_that_names_its_place(
    kind: type[BaseException],
) -> None:
    with pytest.raises(ProjectCodeError) as raised:
        contained(raising(kind))
    place = f"{__name__}.raising.<locals>.rude, line 25,"
    assert str(raised.value) == f"{place} raised {kind.__name__}"
    assert isinstance(raised.value.__cause__, kind)


@pytest.mark.parametrize("kind", [ValueError, MemoryError, RecursionError])
def test_other_exceptions_stay_as_they_are(kind: type[BaseException]) -> None:
    with pytest.raises(kind, match="enough"):
        contained(raising(kind))


def test_interruptions_of_the_queue_stay_as_they_are() -> None:
    with pytest.raises(TaskInterrupted):
        contained(raising(TaskInterrupted))


def test_only_ctrl_c_is_no_matter_of_the_code_that_it_meets() -> None:
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            contained(raising(KeyboardInterrupt))
        signal.signal(signal.SIGINT, lambda *_: None)  # As processes of the queue do.
        with pytest.raises(ProjectCodeError):
            contained(raising(KeyboardInterrupt))
    finally:
        signal.signal(signal.SIGINT, former)


@pytest.mark.parametrize("kind", ERRORS)
def test_a_key_that_cannot_be_computed_refuses_its_call(kind: type[BaseException]) -> None:
    def compute() -> None:
        with pytest.raises(InvalidTask, match=r"^The key could not be computed: .*"):
            text_of(raising(kind), [], {}, "The key", none="")

    in_a_thread(compute)


class SilentError(Exception):
    """Has no text, and ends who asks for one."""

    def __str__(self) -> str:
        raise SystemExit


def test_a_key_whose_error_has_no_text_refuses_its_call_too() -> None:
    with pytest.raises(InvalidTask, match=r"^The key could not be computed: SilentError: <str"):
        text_of(raising(SilentError), [], {}, "The key", none="")


@pytest.mark.parametrize("kind", ERRORS)
def test_each_receiver_hears_a_signal_whatever_another_raises(kind: type[BaseException]) -> None:
    heard: list[str] = []
    sent = Signal()

    async def arude(**kwargs: object) -> None:
        raise kind("enough")

    async def ahears(**kwargs: object) -> None:
        heard.append("coroutine")

    def hears(**kwargs: object) -> None:
        heard.append("function")

    receivers = [raising(kind), hears, arude, ahears]
    for each in receivers:
        sent.connect(each)
    in_a_thread(lambda: send(sent, InternalErrors))
    assert heard == ["function", "coroutine"]
