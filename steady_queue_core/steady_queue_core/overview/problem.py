"""Problem: a finding, and where it can be mended, or seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..doctor import Finding

#: The pages of findings that are told as the doctor tells them; there is none for the others.
PAGES = {
    "claim-orphaned": "processes",
    "limit-stuck": "semaphores",
    "limit-miscounted": "semaphores",
    "task-unknown": "jobs",
    "schedule-task-missing": "schedules",
    "schedule-not-read": "schedules",
    "scheduler-late": "schedules",
    "scheduler-missing": "processes",
    "threads-held": "processes",
    "backlog": "jobs",
    "host-failing": "errors",
    "failures-many": "errors",
    "retention-undone": "processes",
}


@dataclass(frozen=True)
class Problem:
    """A finding, and the page of the admin where it can be mended, or seen."""

    finding: Finding
    #: ``processes``, ``ended``, ``semaphores``, ``schedules``, ``errors``, ``queue``, ``job``,
    #: ``jobs``; or empty.
    page: str
    #: The queue or job that the page is of.
    key: str = ""
    #: Filters of a list of jobs.
    filters: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, finding: Finding) -> Problem:
        """Return the problem that a finding of the doctor is."""
        return cls(finding, PAGES.get(finding.code, ""))
