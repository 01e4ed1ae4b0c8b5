"""What the features have the doctor say of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from ..doctor.finding import Finding, path_of
from ..errors import TaskExpired
from .expiry import findings as expiry
from .rates import findings as rates

#: Of jobs with these ``JobMetadata`` that have not started, at the present time.
WAITING: tuple[Callable[[Any, Any, Any], Iterator[Finding]], ...] = (expiry.of_waiting,)
#: Of scheduled jobs, and when they are due, in words. The first one counts.
SCHEDULED: tuple[Callable[[Any, Any, str], Iterator[Finding]], ...] = (rates.of_scheduled,)
#: Of jobs that have failed with an error, by its path: a name for the job, and when that was.
FAILED: dict[str, Callable[[str, str], Finding]] = {path_of(TaskExpired): expiry.of_failed}


def of_waiting(job: Any, metadata: Any, present: Any) -> Iterator[Finding]:
    """Yield why a job that has not started will not run."""
    return chain.from_iterable(findings(job, metadata, present) for findings in WAITING)


def of_scheduled(job: Any, metadata: Any, when: str) -> Finding | None:
    """Return what a scheduled job waits for; ``None``: for its time alone."""
    found = (findings(job, metadata, when) for findings in SCHEDULED)
    return next(chain.from_iterable(found), None)
