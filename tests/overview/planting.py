"""A queue that is well, in which situations are planted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from steady_queue_core.models import Sample, Statistic
from steady_queue_core.overview import Overview, Scope, closer
from steady_queue_core.statistics.spans import MINUTE
from steady_queue_core.statistics.tally import Tally

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

    def look(self, *, with_schedules: bool = True, **given: Any) -> Overview:
        """Return an overview of the queue."""
        return Overview.of(Scope(self.using, **given), with_schedules=with_schedules)

    @property
    def problems(self) -> list[tuple[str, str, str]]:
        """What is wrong: the code, the page that helps, and what it is of."""
        return [
            (each.finding.code, each.page, each.key or each.filters.get("queue", ""))
            for each in self.look().problems
        ]


@contextmanager
def no_closer_look(using: str) -> Iterator[None]:
    """Let pages within the block look closely no more than one that refreshes itself: there was a
    closer look a moment ago."""
    closer.forget()
    Overview.of(Scope(using))
    with pytest.MonkeyPatch.context() as patch:
        for each in ("findings", "obstacles"):
            look = partial(getattr(closer, each), is_refresh=True)
            patch.setattr(closer, each, lambda of, look=look, **_: look(of))
        yield
