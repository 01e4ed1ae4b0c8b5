"""Columns of the lists of jobs."""

from __future__ import annotations

from typing import Any

from django.utils.safestring import SafeString

from ..dialects import portable
from ..fingerprint import is_fingerprint
from ..listings.job_rows import state_of
from ..models import Job, Process, Semaphore
from . import texts
from .corrupt_rows import column

#: Seconds after which a due job is late.
LATE = 60.0


@column("id")
def number(job: Any) -> str:
    return f"#{job.pk}"


@column("task")
def task(job: Any) -> str:
    return texts.short_path(job.task_path)


@column("queue")
def queue(job: Any) -> str:
    return texts.named(job.queue_name)


@column("priority")
def priority(job: Any) -> int:
    return int(job.priority)


@column("state")
def state(job: Any) -> str:
    found = state_of(job)
    return found.label if found.name else "-"


@column("enqueued")
def enqueued(job: Any) -> str:
    return texts.ago(job.enqueued_at, job.present)


@column("waiting for")
def waiting_for(job: Any) -> str:
    since = job.readyexecution.created_at
    return texts.dated(texts.between(since, job.present), since)


@column("due in")
def due_in(job: Any) -> str:
    due = job.scheduledexecution.due_at
    left = (portable.aware(due) - portable.aware(job.present)).total_seconds()
    if left > 0:
        return texts.dated(texts.between(job.present, due), due)
    words = texts.between(due, job.present)
    return texts.dated(f"late by {words}" if left < -LATE else "due now", due)


@column("batch")
def batch(job: Any) -> SafeString:
    link: SafeString = job.batch_link
    return link


@column("waits for")
def members(job: Any) -> str:
    width = int(job.waitingexecution.width)
    return f"{width:,} member{'' if width == 1 else 's'}"


@column("for")
def waits_since(job: Any) -> str:
    since = job.waitingexecution.created_at
    return texts.dated(texts.between(since, job.present), since)


@column("process")
def process(job: Any) -> Any:
    claim, pages = job.claimedexecution, job.pages
    is_registered = job.process_name is not None
    address = pages.to_page(Process, str(claim.process_id)) if is_registered else ""
    return pages.named(address, claim.process)


@column("running for")
def running_for(job: Any) -> str:
    since = job.claimedexecution.created_at
    return texts.dated(texts.between(since, job.present), since)


@column("progress")
def progress(job: Any) -> str:
    return texts.progress(job.progress)


@column("waits for the key")
def concurrency_key(job: Any) -> Any:
    key = job.blockedexecution.concurrency_key
    return job.pages.named(job.pages.to_page(Semaphore, key), key)


@column("for")
def blocked_for(job: Any) -> str:
    since = job.blockedexecution.created_at
    return texts.dated(texts.between(since, job.present), since)


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


@column("failed")
def failed(job: Any) -> str:
    return texts.ago(job.failedexecution.created_at, job.present)


@column("took")
def took(job: Any) -> str:
    return texts.between(job.last_attempted_at, job.finished_at)


@column("finished")
def finished(job: Any) -> str:
    return texts.ago(job.finished_at, job.present)


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
