"""A queue that is well, in which situations are planted."""

from __future__ import annotations

from typing import Any

import pytest

from steady_queue_core.models import Sample, Statistic
from steady_queue_core.overview import Overview, Scope, busy, closer
from steady_queue_core.statistics.tally import MINUTE, Tally

from ..admin.places import tasks_in
from ..doctor.ward import Ward

TASK = "shop.tasks.send"


class Garden(Ward):
    """A queue with live processes, and with rows of statistics that a test has told it of."""

    #: The present minute, as far as statistics are concerned: it does not turn within a test.
    minute = 60 * 490_000 + 20

    def count(
        self,
        ago: int,
        queue: str = "mail",
        task: str = TASK,
        *,
        span: int = MINUTE,
        writer: int = 1,
        runs: int = 100,
        waits: int = 10,
        **counts: int,
    ) -> None:
        """Have counted something so many minutes ago; attempts that took ``runs`` milliseconds,
        after ``waits``."""
        tally = Tally(**counts)
        for _ in range(tally.finished + tally.failed + tally.retried):
            tally.note_run(runs)
        enqueued = tally.enqueued
        tally.enqueued = 0
        for _ in range(enqueued):
            tally.note_wait(waits)
        minute = self.minute - ago
        self.rows(Statistic).create(
            span=span, minute=minute - minute % abs(span),
            stored_minute=minute, queue_name=queue, task_path=task, writer=writer,
            **tally.values(),
        )  # fmt: skip

    def sample(self, ago: int, queue: str = "", ready: int = 0, wait: int = 0) -> None:
        """Have looked at a queue so many minutes ago."""
        self.rows(Sample).create(
            minute=self.minute - ago, queue_name=queue, ready=ready, oldest_wait_ms=wait
        )

    def look(self, *, with_schedules: bool = True, closer: bool = False, **given: Any) -> Overview:
        """Return an overview of the queue."""
        scope = Scope(self.using, **given)
        return Overview.of(scope, with_schedules=with_schedules, looks_closer=closer)

    @property
    def problems(self) -> list[tuple[str, str, str]]:
        """What is wrong: the code, the page that helps, and what it is of."""
        return [
            (each.finding.code, each.page, each.key or each.filters.get("queue", ""))
            for each in self.look().problems
        ]


def plant(request: pytest.FixtureRequest, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Garden:
    """Return the queue of a test, in the database that it names as ``using``."""
    parameters = getattr(getattr(request.node, "callspec", None), "params", {})
    using = parameters.get("using", "default")
    settings.TASKS = tasks_in(using)
    monkeypatch.setattr(busy.Moment, "minute", Garden.minute)
    closer.forget()  # What a test before this one has found.
    return Garden(using)
