"""The sweep is worth something: a few of its cells turn red for each defect of a kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from . import enqueues, schedules, starts
from .app.switch import ERRORS
from .enqueues import CALLS
from .locks import LOCKS
from .places import PLACES
from .sweep import Cells, sweep

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


def cells(name: str, *errors: str) -> Cells:
    """Return a place with some errors."""
    place = next(each for each in PLACES if each.name == name)
    return [(place, error) for error in errors]


def id_of(value: Any) -> str:
    """Return the name of a mutant, or of the place of some cells."""
    return value if isinstance(value, str) else str(value[0][0].name)


def calls(name: str, way: str, error: str) -> list[tuple[enqueues.Call, str, str]]:
    """Return a cell of an enqueue."""
    return [(next(each for each in CALLS if each.name == name), error, way)]


@pytest.mark.parametrize(
    ("mutant", "chosen"),
    [
        ("all passes", cells("key of a callback", "SystemExit")),
        ("receivers are trusted", cells("receiver of task_started", "ValueError")),
        ("receivers are trusted", cells("receiver of process_polled", "SystemExit")),
        ("receivers are trusted", cells("hook of internal errors", "ValueError")),
        ("threads are left", cells("function", "ValueError")),
        ("files are left", cells("function", *[*ERRORS][:3])),
        ("errors are kept", cells("function", *[*ERRORS][:6])),
        ("connections are not tidied", cells("function", *[*ERRORS][:6])),
    ],
    ids=id_of,
)
def test_a_fault_at_work_spreads_where(mutant: str, chosen: Cells) -> None:
    assert sweep("sqlite", "threads", chosen, (), mutant=mutant).wrong


@pytest.mark.server("postgres")
@pytest.mark.parametrize(
    ("mutant", "lock"),
    [("nothing is set aside", "a running job"), ("locks are waited for", "its place in the queue")],
)
def test_a_lock_holds_up_others_where(mutant: str, lock: str) -> None:
    [chosen] = [each for each in LOCKS if each.name == lock]
    assert sweep("postgres", "threads", [], [chosen], mutant=mutant).wrong


@pytest.mark.parametrize(
    ("mutant", "chosen"),
    [
        ("keys are trusted", calls("concurrency key", "alone", "SystemExit")),
        ("texts are trusted", calls("unique key", "alone", "SilentError")),
        ("receivers are trusted", calls("receiver of task_enqueued", "alone", "ValueError")),
        ("calls are stored apart", calls("sealing of a call", "in bulk", "ValueError")),
    ],
    ids=id_of,
)
def test_an_enqueue_goes_wrong_where(
    mutant: str, chosen: Sequence[tuple[enqueues.Call, str, str]]
) -> None:
    assert enqueues.sweep("sqlite", chosen, mutant=mutant).wrong


@pytest.mark.parametrize("mutant", ["runs are trusted"])
def test_a_run_keeps_others_from_theirs_where(mutant: str) -> None:
    assert schedules.sweep("sqlite", ["SystemExit"], mutant=mutant).wrong


@pytest.mark.parametrize("mutant", ["receivers are trusted"])
def test_a_process_does_not_work_where(mutant: str) -> None:
    assert starts.sweep("sqlite", ["SystemExit"], mutant=mutant).wrong
