"""Columns of the lists of jobs."""

from __future__ import annotations

from typing import Any

from ..dialects import portable
from ..fingerprint import is_fingerprint
from ..listings.job_rows import state_of
from ..models import Job, Process, Semaphore
from . import texts
from .columns import attribute, column, since

#: Seconds after which a due job is late.
LATE = 60.0


number = attribute("id", "pk", "#{}".format)
task = attribute("task", "task_path", texts.short_path)
queue = attribute("queue", "queue_name")
priority = attribute("priority", "priority", int)


@column("state")
def state(job: Any) -> str:
    found = state_of(job)
    return found.label if found.name else "-"


enqueued = since("enqueued", "enqueued_at", texts.ago)
waiting_for = since("waiting for", "readyexecution.created_at")


@column("due in")
def due_in(job: Any) -> str:
    due = job.scheduledexecution.due_at
    left = (portable.aware(due) - portable.aware(job.present)).total_seconds()
    if left > 0:
        return texts.dated(texts.between(job.present, due), due)
    words = texts.between(due, job.present)
    return texts.dated(f"late by {words}" if left < -LATE else "due now", due)


batch = attribute("batch", "batch_link", lambda link: link)


@column("waits for")
def members(job: Any) -> str:
    width = int(job.waitingexecution.width)
    return f"{width:,} member{'' if width == 1 else 's'}"


waits_since = since("for", "waitingexecution.created_at")


@column("process")
def process(job: Any) -> Any:
    claim, pages = job.claimedexecution, job.pages
    is_registered = job.process_name is not None
    address = pages.to_page(Process, str(claim.process_id)) if is_registered else ""
    return pages.named(address, claim.process)


running_for = since("running for", "claimedexecution.created_at")
progress = attribute("progress", "progress", texts.progress)


@column("waits for the key")
def concurrency_key(job: Any) -> Any:
    key = job.blockedexecution.concurrency_key
    return job.pages.named(job.pages.to_page(Semaphore, key), key)


blocked_for = since("for", "blockedexecution.created_at")


@column("error")
def error(job: Any) -> Any:
    failure, pages = job.failedexecution, job.pages
    group = str(failure.fingerprint)
    address = pages.to_list(Job, state="failed", error=group) if is_fingerprint(group) else ""
    kind = failure.exception_class.rpartition(".")[2]
    return pages.named(address, f"{kind}: {job.message}")


@column("attempts")
def attempts(job: Any) -> str:
    return f"{job.attempts} of {abs(job.max_attempts)}"


failed = since("failed", "failedexecution.created_at", texts.ago)


@column("took")
def took(job: Any) -> str:
    return texts.between(job.last_attempted_at, job.finished_at)


finished = since("finished", "finished_at", texts.ago)


COMMON = (number, task, queue, priority)
COLUMNS_BY_STATE = {
    "": (*COMMON, state, enqueued),
    "ready": (*COMMON, waiting_for, enqueued),
    "scheduled": (*COMMON, due_in, attempts, enqueued),
    "blocked": (*COMMON, concurrency_key, blocked_for, enqueued),
    "waiting": (*COMMON, batch, members, waits_since),
    "running": (*COMMON, process, running_for, progress, attempts),
    "failed": (number, task, queue, error, attempts, failed),
    "finished": (*COMMON, took, finished),
}
