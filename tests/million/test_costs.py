"""What the queue does again and again costs as much with a million jobs as with a few."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from ..servers.kinds import KINDS
from .building import Shape
from .conftest import LARGE, SMALL, Histories
from .costs import Meter
from .operations import OPERATIONS, RETENTION, Place

BACKEND = "steady_queue_core.backend.SteadyQueueBackend"
#: A batch may cost that many times as much in a history that is a hundred times as long.
FLAT = 1.5

#: The first of the tests of a database builds it, which takes a busy machine a while.
pytestmark = pytest.mark.timeout(600)

on_every_kind = pytest.mark.parametrize(
    "kind",
    ["sqlite", *(pytest.param(kind, marks=pytest.mark.server(kind)) for kind in KINDS)],
)


def measured(
    histories: Histories,
    kind: str,
    jobs: int,
    name: str,
    *,
    analyzed: bool = True,
    counts_all: bool = False,
) -> Meter:
    using = histories.alias(kind, jobs, analyzed=analyzed)
    place, operation = Place(using, Shape.of(jobs)), OPERATIONS[name]
    if operation.planned:
        place.dialect.prepare(place.connection, impatient=True)
    with Meter(using, counts_all=counts_all).undone(planned=operation.planned) as meter:
        operation.do(place)
    return meter


@pytest.fixture(autouse=True)
def _quietly() -> Iterator[None]:
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(autouse=True)
def _tasks(settings: Any, kind: str) -> None:
    alias = f"{kind}_with_{LARGE}"
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": {"database": alias}}}


@on_every_kind
@pytest.mark.parametrize("analyzed", [False, True], ids=["", "analyzed"])
def test_no_operation_reads_the_history(histories: Histories, kind: str, analyzed: bool) -> None:
    """With statistics, and before there are any: a server looks at its tables when it likes."""
    too_many = []
    for name, operation in OPERATIONS.items():
        meter = measured(histories, kind, LARGE, name, analyzed=analyzed)
        if meter.rows > operation.rows:
            worst = max(meter.costs)
            too_many.append(f"{name}: {meter.rows} rows, {worst.rows} of them by {worst.statement}")
    assert not too_many, "\n".join(too_many)


@on_every_kind
@pytest.mark.parametrize("name", RETENTION)
def test_a_batch_of_clearing_costs_the_same_in_a_long_history(
    histories: Histories, kind: str, name: str
) -> None:
    long = measured(histories, kind, LARGE, name, counts_all=True)
    short = measured(histories, kind, SMALL, name, counts_all=True)
    assert 0 < long.rows <= FLAT * short.rows, max(long.costs)
