"""Processes: none, silent ones, late heartbeats, and such of several versions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from .. import __version__
from ..listings.counts import BoundedCount
from ..listings.processes import ListedProcess
from ..listings.wording import duration, name
from .finding import Finding, info, many, problem, warning
from .patient import ENDED, Patient, few

START = "Start the queue: python manage.py steady_queue"
#: So many heartbeats may be missed before it is told.
MISSED = 3
#: More than any two statements are apart.
AHEAD = timedelta(seconds=5)


def none_alive(patient: Patient) -> Iterator[Finding]:
    if patient.is_alive:
        return
    waiting = BoundedCount.sum_of(each.ready for each in patient.queues if not each.is_paused)
    running = BoundedCount.sum_of(each.counts["running"] for each in patient.queues)
    works = [
        many(number, one, more)
        for number, one, more in (
            (waiting, "waits", "wait"),
            (running, "is claimed", "are claimed"),
            (patient.overdue, "is overdue", "are overdue"),
        )
        if number.number
    ]
    heard = _last_heard(patient)
    if works:
        text = f"No process of the queue is alive, and of the jobs {', '.join(works)}.{heard}"
        yield problem("process-none", text, START)
    else:
        yield info("process-none", f"No process of the queue is alive.{heard}", START)


def _last_heard(patient: Patient) -> str:
    heard = [each for each in patient.processes if each.silence is not None]
    if not heard:
        return ""
    last = min(heard, key=lambda each: each.silence or patient.options.process_alive_threshold)
    return f" The last one, {described(last)}, was heard {silent_for(last)}."


def without_supervisor(patient: Patient) -> Iterator[Finding]:
    if patient.is_alive and not patient.live("supervisor"):
        yield warning(
            "supervisor-missing",
            "Processes are alive, but no supervisor is: nobody replaces those that end, or ends "
            "the claims of those that die.",
            START,
        )


def silent_ones(patient: Patient) -> Iterator[Finding]:
    # What they held is told of with their claims.
    silent = (each for each in patient.processes if not each.is_live and not each.running)
    if not patient.is_alive:
        return
    yield from few(
        warning(
            "process-stale",
            f"{described(each)} has sent no heartbeat: it was heard {silent_for(each)}.",
            "If it has ended, a supervisor removes its row within minutes. If it runs: see "
            "whether its host is suspended or overloaded, or cut off from the database.",
        )
        for each in silent
    )


def versions(patient: Patient) -> Iterator[Finding]:
    live = [each for each in patient.processes if each.is_live]
    others = {each: each.known.get("version") for each in live}
    old = [each for each, known in others.items() if known not in (None, __version__)]
    if old:
        listed = ", ".join(sorted({name(others[each]) for each in old}))
        yield warning(
            "versions-differ",
            f"{many(len(old), 'live process runs', 'live processes run')} Steady Queue {listed}, "
            f"and this is {__version__}: {described(old[0])}.",
            "Restart the processes that run the former code, once it is deployed everywhere.",
        )


def described(process: ListedProcess | None) -> str:
    """Return which process it is, and where."""
    if process is None:
        return "a process that is not registered"
    row = process.row
    ended = ", ended" if process.state == ENDED else ""
    return f"{name(row.kind)} {name(row.name)} (pid {name(row.pid)} on {name(row.hostname)}{ended})"


def silent_for(process: ListedProcess) -> str:
    """Return when a process was heard last."""
    if process.silence is None:
        return "too long ago: it was declared dead"
    return f"{duration(process.silence)} ago"


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


EXAMINATIONS = (none_alive, without_supervisor, silent_ones, versions, late, in_the_future)
