"""What the subcommands read is bounded, whatever the history."""

from __future__ import annotations

from typing import Any

import pytest

from steady_queue_core.command_line import jobs

from ..command_line.invoking import invoke
from .building import GROUPS, Shape
from .conftest import LARGE, Histories
from .costs import Meter
from .test_costs import BACKEND, on_every_kind

#: The first of the tests of a database builds it, which takes a busy machine a while.
pytestmark = pytest.mark.timeout(600)

#: The queues and five states are counted up to 10,000 each, and failed jobs with their queues.
#: MySQL counts what it finds by an index twice.
COUNTS = 300_000
#: One page of a search without an index looks at 5,000 jobs, with what belongs to them.
LOOKS = 60_000
LOOKING: list[list[str]] = [
    ["status"],
    ["queues"],
    ["processes"],
    ["schedules"],
    ["limits"],
    ["health", "--max-wait", "5m", "--max-failed", "10"],
    ["jobs"],
    *(
        ["jobs", "--state", state]
        for state in ("ready", "scheduled", "blocked", "running", "failed", "finished")
    ),
    ["jobs", "--queue", "q7", "--state", "ready"],
    ["jobs", "--task", "shop.tasks.t3"],
    ["jobs", "--state", "failed", "--since", "1h"],
    ["jobs", "--error-group", GROUPS[1]],
    ["jobs", "--error-group", GROUPS[1], "--since", "1h"],
    ["jobs", "--error-group", "c" * 16],
    ["errors"],
    ["errors", "--queue", "q7"],
    ["errors", "--task", "shop.tasks.none"],
    ["jobs", "--state", "finished", "--until", "3650d"],
    ["clear", "--older-than", "3650d", "--include-failed", "--dry-run"],
    ["retry", "--all", "--dry-run"],
    ["retry", "--error-group", GROUPS[0], "--dry-run"],
    ["discard", "--queue", "none", "--state", "ready", "--dry-run"],
]
SEARCHES: list[list[str]] = [
    ["jobs", "--error", "NoSuchError"],
    ["jobs", "--task", "shop.tasks.none"],
    ["jobs", "--batch", "999999999"],
    ["cancel", "--task", "shop.tasks.none", "--dry-run"],
]


@on_every_kind
@pytest.mark.django_db
def test_no_subcommand_reads_the_history(histories: Histories, kind: str, settings: Any) -> None:
    using = histories.alias(kind, LARGE, analyzed=True)
    options = {"database": using}
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": options}}
    bounds = [(COUNTS, each) for each in [*LOOKING, ["show", str(Shape.of(LARGE).first("ready"))]]]
    bounds += [(COUNTS + jobs.MOST_PAGES * LOOKS, each) for each in SEARCHES]
    too_many = []
    for bound, arguments in bounds:
        with Meter(using).undone() as meter:
            told = invoke(*arguments)
        assert told.code in (0, 1), told
        assert "reports an error" not in told.err
        if not 0 < meter.rows <= bound:
            most = max(meter.costs, default=None)
            too_many.append(f"{arguments}: {meter.rows} rows, most by {most}")
    assert not too_many, "\n".join(too_many)
