"""Overview: what there is in one database, and what has become of its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..dialects.database import Database
from ..doctor import Finding
from ..doctor.environment import host_time
from ..doctor.patient import Patient
from ..listings.damage import readable
from ..listings.processes import ListedProcess
from . import closer
from .busy import Busy, LongRun, Moment, longest_runs, registered
from .causes import Causes, causes
from .history import History
from .problems import Evidence, Problem, problems
from .queues import MOST_SHOWN, Lengths, QueueLine, listed_queues, queue_lines, queue_names
from .schedules import NextRun, next_runs
from .scope import LATELY, Scope
from .total import Total

#: Most tasks that are shown.
MOST_TASKS = 12


class TaskLine(NamedTuple):
    """A task, and what has become of its jobs in the window."""

    path: str
    total: Total


@dataclass(frozen=True)
class Overview:
    """A queue at one moment. Made by eight queries, six without the recurring tasks, beside those
    of a closer look."""

    scope: Scope
    moment: Moment
    processes: Sequence[ListedProcess]
    lengths: Lengths
    history: History
    problems: Sequence[Problem]
    #: The queues in the scope, those with the most ready jobs first; and how many are left out.
    queues: Sequence[QueueLine]
    queues_left: int
    #: How many queues of the database were not looked at, because there are too many.
    queues_unseen: int
    longest: Sequence[LongRun]
    causes: Causes
    #: ``None``: not read.
    schedules: Sequence[NextRun] | None
    #: Whether anything was read.
    is_read: bool = True

    @classmethod
    def of(
        cls, scope: Scope, *, with_schedules: bool = True, looks_closer: bool = False
    ) -> Overview:
        """Look at a database. What cannot be read for a damaged row is left out; nothing is read
        while something is known to keep whoever reads waiting, or to let them fail."""
        if found := closer.obstacles(scope.using, looks=looks_closer):
            return cls._unread(scope, found)
        busy = Busy.of(scope)
        moment, processes = registered(scope.using, busy.by_process, busy.moment)
        history = History.of(scope, moment.minute)
        names, unseen = queue_names(
            readable(Database.of(scope.using).list_queues), busy, processes, history
        )
        patient = Patient(scope.using)
        lengths = Lengths.of(scope.using, names, moment.present - patient.dispatch_delay)
        queues = listed_queues(lengths, busy, processes, moment)
        longest = longest_runs(busy.longest, moment, processes, history.usual)
        patient.know(
            present=moment.present,
            processes=list(processes),
            queues=queues,
            overdue=lengths.overdue,
        )
        lines = queue_lines((each for each in queues if scope.has_queue(each.name)), busy, history)
        ordered = sorted(lines, key=_place_of_queue)
        findings = closer.findings(patient, looks=looks_closer, at_once=with_schedules)
        return cls(
            scope=scope,
            moment=moment,
            processes=processes,
            lengths=lengths,
            history=history,
            problems=problems(Evidence(patient, moment, lengths, history, longest, findings)),
            queues=ordered[:MOST_SHOWN],
            queues_left=len(ordered[MOST_SHOWN:]),
            queues_unseen=unseen,
            longest=[each for each in longest if scope.has(each.queue, each.task)],
            causes=causes(scope),
            schedules=next_runs(scope, moment) if with_schedules else None,
        )

    @classmethod
    def _unread(cls, scope: Scope, obstacles: Sequence[Finding]) -> Overview:
        present = host_time()
        moment = Moment(present, present, present)
        return cls(
            scope=scope,
            moment=moment,
            processes=(),
            lengths=Lengths.of_nothing(),
            history=History(moment.minute, scope),
            problems=[Problem.of(each) for each in obstacles],
            queues=(),
            queues_left=0,
            queues_unseen=0,
            longest=(),
            causes=Causes((), has_more=False, since=None),
            schedules=None,
            is_read=False,
        )

    @cached_property
    def tasks(self) -> list[TaskLine]:
        """The tasks in the scope: those first that have failed most, then those that ran most."""
        found = [TaskLine(path, total) for path, total in self.history.by_task.items()]
        return sorted(found, key=_place_of_task)[:MOST_TASKS]

    @property
    def tasks_left(self) -> int:
        """How many tasks in the scope are left out."""
        return max(0, len(self.history.by_task) - MOST_TASKS)

    @property
    def live(self) -> int:
        """How many processes live."""
        return sum(each.is_live for each in self.processes)

    @property
    def silent(self) -> int:
        """How many processes are registered and do not live."""
        return len(self.processes) - self.live

    @property
    def finished_rate(self) -> float:
        """How many jobs finished in a minute, on average of the last ten."""
        return self.history.latest.finished / LATELY

    @property
    def slow_wait(self) -> float | None:
        """How long 95 % of the jobs waited at most, in the last ten minutes, in milliseconds."""
        return self.history.latest.wait(0.95)


def _place_of_queue(line: QueueLine) -> tuple[bool, int, int, str]:
    ready, ended = line.listed.ready.number, line.window.ended
    return not line.listed.is_unserved, -ready, -ended, line.name


def _place_of_task(line: TaskLine) -> tuple[int, int, str]:
    return -line.total.failed, -line.total.attempts, line.path
