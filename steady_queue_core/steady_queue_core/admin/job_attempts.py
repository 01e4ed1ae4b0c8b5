"""The attempts of a job: when, how long, by which process, and what came of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db.models import Q

from ..models import Process
from ..tasks.results import workers_of
from ..tasks.stored_errors import StoredError, latest_errors
from . import texts
from .detail import Section, Table
from .page_links import PageLinks

#: Number of failed attempts shown, the most recent ones.
MOST_ATTEMPTS = 20
HEADINGS = ("Attempt", "Started", "Took", "Process", "Outcome", "Error")


class Processes:
    """The processes of a job's attempts, as far as they are still registered."""

    def __init__(self, job: Any, links: PageLinks) -> None:
        self._links = links
        claim = getattr(job, "claimedexecution", None)
        self.holder_id = None if claim is None else claim.process_id
        self.errors = latest_errors(job.errors, MOST_ATTEMPTS)
        names = {each.worker for _, each in self.errors.errors}
        names.update(workers_of(job.worker_ids)[-1:])
        wanted = Q(pk=self.holder_id) | Q(name__in=names)
        rows = Process.objects.using(job._state.db).filter(wanted) if claim or names else ()
        self._found: Mapping[int, Process] = {row.pk: row for row in rows}
        self._ids = {row.name: row.pk for row in rows}

    @property
    def holder(self) -> str:
        """The process that runs the job; empty: none does."""
        if self.holder_id is None:
            return ""
        process = self._found.get(self.holder_id)
        if process is None:
            return f"process-{self.holder_id}, which is not registered"
        return self._links.link(self._links.to_page(Process, str(process.pk)), process)

    def link(self, name: str) -> str:
        """Return the name of a process, which leads to its page as long as there is one."""
        pk = self._ids.get(name)
        return self._links.link("" if pk is None else self._links.to_page(Process, str(pk)), name)


def attempts_section(job: Any, processes: Processes) -> Section | None:
    """Return the attempts, the most recent one first; nothing before the first one."""
    found, total, is_too_long = processes.errors
    failed = getattr(job, "failedexecution", None) is not None
    rows = [
        _failed_row(error, processes, is_last=failed and number == total) for number, error in found
    ]
    if (last := _last_row(job, processes, failed=failed)) is not None:
        rows.append(last)
    if not rows:
        return None
    note = f"The last {MOST_ATTEMPTS} failures." if total > MOST_ATTEMPTS else ""
    note = "The failures are too long to show." if is_too_long else note
    return Table("Attempts, most recent first", HEADINGS, rows[::-1], note)


def _failed_row(error: StoredError, processes: Processes, *, is_last: bool) -> tuple[Any, ...]:
    took = "" if error.seconds is None else texts.duration(timedelta(seconds=error.seconds))
    return (
        "" if error.attempt is None else error.attempt,
        texts.moment(error.started_at),
        took,
        processes.link(texts.name(error.worker)),
        "failed" if is_last else "failed, tried again",
        texts.name(error.path),
    )


def _last_row(job: Any, processes: Processes, *, failed: bool) -> tuple[Any, ...] | None:
    """Return the attempt that goes on or has succeeded."""
    claim = getattr(job, "claimedexecution", None)
    if claim is not None:
        began = texts.moment(claim.created_at)
        return (job.attempts + 1, began, "", processes.holder, "running", "")
    if failed or job.finished_at is None or job.last_attempted_at is None:
        return None
    worker = "".join(workers_of(job.worker_ids)[-1:])
    return (
        job.attempts,
        texts.moment(job.last_attempted_at),
        texts.between(job.last_attempted_at, job.finished_at),
        processes.link(texts.name(worker)),
        "finished",
        "",
    )
