"""What the doctor finds beyond what a page reads for itself: too dear for each refresh.

A page that somebody asks for looks closely each time; one that refreshes itself does so every now
and then, and tells meanwhile of what was found last. Of several threads one looks at a time.
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
    database,
    failures,
    hosts,
    limits,
    locks,
    permits,
    queues,
    retention,
    schedules,
    schema,
    settings,
    stops,
    threads,
    unknown_tasks,
)
from ..doctor.patient import Patient
from ..doctor.round import findings_of

#: Seconds for which a page that refreshes itself tells what was found before, and any page does
#: of what is dearest; and so many times as long as that look took, at least.
OFTEN, SELDOM, TIMES = 30.0, 600.0, 20.0
#: What is read for the page anyway is examined by ``problems``.
EXAMINATIONS = (
    *settings.EXAMINATIONS,
    *schedules.EXAMINATIONS,
    *unknown_tasks.EXAMINATIONS,
    claims.without_process,
    *limits.EXAMINATIONS,
    *permits.EXAMINATIONS,
    *threads.EXAMINATIONS,
    queues.slow,
    *hosts.EXAMINATIONS,
    *failures.EXAMINATIONS,
    *retention.EXAMINATIONS,
    *stops.EXAMINATIONS,
    *database.EXAMINATIONS,
)
DEAREST = schema.EXAMINATIONS
#: Warnings about the code and its settings, which ``manage.py check`` prints, stay for good.
LEFT_OUT = {"check-warning"}


class Look:
    """What one look has found last."""

    def __init__(self) -> None:
        self.found: Sequence[Finding] = ()
        self._since, self._took = -math.inf, 0.0
        self._turn = threading.Lock()

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


def obstacles(using: str, *, is_refresh: bool) -> Sequence[Finding]:
    """Return what keeps a page from being read: whoever read on would fail, or wait."""
    look = _obstacles[using]
    # It is seen at once that they are gone.
    keep = OFTEN if is_refresh and not look.found else 0.0
    return look.findings(lambda: locks.ahead(Patient(using), access.obstacles(using)), keep)


def findings(patient: Patient, *, is_refresh: bool) -> list[Finding]:
    """Return what the page does not see by itself."""
    keep = OFTEN if is_refresh else 0.0
    often = _closer[patient.using].findings(partial(findings_of, EXAMINATIONS, patient), keep)
    seldom = _dearest[patient.using].findings(partial(findings_of, DEAREST, patient), SELDOM)
    return [each for each in (*often, *seldom) if each.code not in LEFT_OUT]


def forget() -> None:
    """Look anew, whenever it was last."""
    for looks in (_obstacles, _closer, _dearest):
        looks.clear()
