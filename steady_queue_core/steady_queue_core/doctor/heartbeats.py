"""Heartbeats that are late, or that lie in the future."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from ..listings.wording import duration, name
from .finding import Finding, problem
from .patient import Patient
from .processes import described
from .round import few
from .words import many

#: So many heartbeats may be missed before it is told.
MISSED = 3
#: More than any two statements are apart.
AHEAD = timedelta(seconds=5)


def late(patient: Patient) -> Iterator[Finding]:
    """Processes that still count as live, and have missed several heartbeats."""
    interval, dead_after = (
        patient.options.process_heartbeat_interval,
        patient.options.process_alive_threshold,
    )
    yield from few(
        problem(
            "heartbeat-late",
            f"{described(each)} has sent no heartbeat for {duration(each.silence)}, and should "
            f"every {duration(interval)}; it has claimed {many(each.running, 'job')}.",
            "See whether it is stopped, starved of CPU time, or waits for the database; if it "
            f"hangs, end it. Its jobs are taken from it after {duration(dead_after)} of silence.",
        )
        for each in patient.processes
        if each.is_live and each.silence is not None and each.silence > MISSED * interval
    )


def in_the_future(patient: Patient) -> Iterator[Finding]:
    """The last heartbeat of all, if the database's clock has been set back since."""
    heard = [(each.ahead, each.row.name) for each in patient.processes if each.ahead is not None]
    ahead, name_ = max(heard, default=(timedelta(0), ""))
    if ahead > AHEAD:
        yield problem(
            "clock-set-back",
            f"The last heartbeat of {name(name_)} is {duration(ahead)} in the future: the clock of "
            "the database was set back. Jobs are due that much later, and processes that die are "
            "noticed that much later.",
            "See that the clock of the server is right now, and restart the queue's processes.",
        )


EXAMINATIONS = (late, in_the_future)
