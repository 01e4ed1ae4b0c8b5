"""What the doctor finds beyond what a page reads for itself: too dear for each request.

A closer look is asked for: by whoever follows the link, and by a page that refreshes itself, every
now and then. Other requests tell of what was found last. Of several threads one looks at a time.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from time import monotonic

from ..dialects import INFO
from ..doctor import (
    Finding,
    access,
    claims,
    dispatchers,
    environment,
    failures,
    limits,
    next_jobs,
    queues,
    schedules,
)
from ..doctor.patient import Patient, findings_of

#: Seconds for which what was found is told without another look, and the same of what is dearest;
#: so many times as long as the look took, at least.
OFTEN, SELDOM, TIMES = 25.0, 600.0, 20.0
#: Seconds after which nothing is told that was found.
FORGOTTEN = 1800.0
#: What is read for the page anyway is examined by ``problems``.
EXAMINATIONS = (
    environment.system_checks,
    *schedules.EXAMINATIONS,
    next_jobs.unknown_tasks,
    claims.without_process,
    *limits.EXAMINATIONS,
    claims.held,
    queues.slow,
    *failures.EXAMINATIONS,
    dispatchers.undone,
    failures.shutdown_timeout,
    environment.observations,
)
DEAREST = (environment.missing_indexes,)
#: Warnings about the code and its settings, which ``manage.py check`` prints, stay for good.
LEFT_OUT = {"check-warning"}


class Look:
    """What one look has found last."""

    def __init__(self) -> None:
        self.found: Sequence[Finding] = ()
        self._since, self._took = -math.inf, 0.0
        self._turn = threading.Lock()

    def last(self) -> Sequence[Finding]:
        """Return what was found last, unless that is long ago."""
        return self.found if monotonic() - self._since < FORGOTTEN else ()

    def findings(self, find: Callable[[], Iterable[Finding]], keep: float) -> Sequence[Finding]:
        """Return what ``find`` has found in the last ``keep`` seconds, or finds now."""
        age = monotonic() - self._since
        if age >= max(keep, keep and TIMES * self._took) and self._turn.acquire(blocking=False):
            try:
                begun = monotonic()
                self.found = [each for each in find() if each.severity != INFO]
                self._since = monotonic()
                self._took = self._since - begun
            finally:
                self._turn.release()
        return self.found


_obstacles: defaultdict[str, Look] = defaultdict(Look)
_closer: defaultdict[str, Look] = defaultdict(Look)
_dearest: defaultdict[str, Look] = defaultdict(Look)


def obstacles(using: str, *, looks: bool) -> Sequence[Finding]:
    """Return what keeps a page from being read: whoever read on would fail, or wait."""
    look = _obstacles[using]
    if not looks and not look.found:  # It is seen at once that they are gone.
        return ()
    return look.findings(lambda: access.ahead(Patient(using), access.obstacles(using)), keep=0.0)


def findings(patient: Patient, *, looks: bool, at_once: bool = False) -> list[Finding]:
    """Return what the page does not see by itself. One that ``looks`` closer does so if the last
    time was a while ago, or ``at_once``."""
    often, seldom = _closer[patient.using], _dearest[patient.using]
    if looks:
        often.findings(partial(findings_of, EXAMINATIONS, patient), 0.0 if at_once else OFTEN)
        seldom.findings(partial(findings_of, DEAREST, patient), SELDOM)
    return [each for each in (*often.last(), *seldom.last()) if each.code not in LEFT_OUT]


def forget() -> None:
    """Look anew, whenever it was last."""
    for looks in (_obstacles, _closer, _dearest):
        looks.clear()
