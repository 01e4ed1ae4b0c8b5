"""Blocked jobs: who holds the permits of their key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..listings.counts import BoundedCount
from ..listings.wording import between, name
from ..models import BlockedExecution, ClaimedExecution, Job, ReadyExecution
from . import job_task, permits, queues
from .claims import remedy
from .finding import Finding, info, problem
from .limits import holders, is_stuck
from .patient import Patient
from .processes import described, silent_for
from .words import many

#: So many holders are looked at.
MOST = 20
#: And so many are told of.
MOST_TOLD = 5


def findings(patient: Patient, job: Job, row: Any) -> Iterator[Finding]:
    """Yield whom a blocked job waits for, and what keeps that one."""
    using, key = patient.using, row.concurrency_key
    held = list(holders(patient, key).order_by("pk").values_list("pk", flat=True)[:MOST])
    # In this order: it may have been admitted meanwhile.
    if not held and BlockedExecution.objects.using(using).filter(pk=job.pk).exists():
        yield is_stuck(patient, key, job.pk)
    yield from permits.of_keys(patient, {key: job.pk})
    known = {each.pk: each for each in patient.processes}
    claims = ClaimedExecution.objects.using(using).in_bulk(held)
    ready = ReadyExecution.objects.using(using).in_bulk(held)
    said = []
    for job_id in held:
        if (claim := claims.get(job_id)) is not None:
            process = known.get(claim.process_id)
            since = between(claim.created_at, patient.present)
            said.append(f"job {job_id}, claimed {since} ago by {_who(process)}")
            if process is None or not process.is_live:
                yield _lost(patient, key, job_id, process)
        elif (waiting := ready.get(job_id)) is not None:
            said.append(f"job {job_id}, ready in queue {queues.quoted(waiting.queue_name)}")
            yield from _of_queue(patient, waiting.queue_name)
    yield from job_task.findings(patient, job)
    yield info(
        "job-blocked",
        f"Job {job.pk} is blocked by the concurrency key {name(key)!r}, which is held by "
        f"{'; '.join(said[:MOST_TOLD]) or 'nobody'}{_others(len(held))}.",
        "It becomes ready when one of these ends. To have it run beyond the limit: "
        f"{patient.command('run-now', job.pk)}",
    )


def _others(held: int) -> str:
    if held <= MOST_TOLD:
        return ""
    return f"; and {many(BoundedCount(held - MOST_TOLD, held < MOST), 'other')}"


def _of_queue(patient: Patient, queue_name: str) -> Iterator[Finding]:
    queue = patient.queue(queue_name)
    if queue is not None and queue.is_paused:
        yield queues.is_paused(patient, queue)
    elif queue is not None and not queue.workers:
        yield queues.is_unserved(patient, queue)


def _lost(patient: Patient, key: object, job_id: int, process: Any) -> Finding:
    code = "claim-orphaned" if process is None else "claim-stale"
    return problem(
        code,
        f"Job {job_id} holds the concurrency key {name(key)!r}, and {_who(process)} runs it.",
        remedy(patient),
    )


def _who(process: Any) -> str:
    if process is None:
        return "a process that is not registered"
    said = described(process)
    return said if process.is_live else f"{said}, which was heard {silent_for(process)}"
