"""Jobs that have not started: what they wait for, and whether their task is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..dialects import DependencyState, portable
from ..listings import wording
from ..listings.counts import CAP, BoundedCount, count_each
from ..listings.wording import between, duration, moment, name
from ..models import (
    BlockedExecution,
    ClaimedExecution,
    Dependency,
    FailedExecution,
    Job,
    ReadyExecution,
)
from ..processes.worker.unknown_tasks import left_since
from ..tasks.metadata import JobMetadata
from ..tasks.results import errors_of
from . import dispatchers, limits, queues
from .claims import remedy
from .finding import Finding, info, many, problem
from .limits import holders, is_stuck
from .patient import LATE, Patient
from .processes import described, none_alive, silent_for

#: So many of these are named.
MOST_AWAITED = 5
#: So many holders are looked at.
MOST_HOLDERS = 20
#: And so many are told of.
MOST_TOLD = 5


def of_task(patient: Patient, job: Job) -> Iterator[Finding]:
    """Yield why no worker will run the task of a job that has not started."""
    # The findings of features are made of those of this package.
    from ..features import findings

    yield from findings.of_waiting(job, JobMetadata.read(job.metadata), patient.present)
    path = name(job.task_path)
    since = left_since(job.errors)
    if not patient.knows(job.task_path):
        failure = f" {wording.line(patient.import_failure)}" if patient.import_failure else ""
        yield problem(
            "job-task-unknown",
            f"Job {job.pk} names the task {path}, which this project does not have.{failure}",
            "Define it with @task in the tasks.py of an installed app, or name its module in "
            "STEADY_QUEUE['task_modules'], and restart the workers. If it was renamed, keep the "
            "old name until its jobs are done.",
        )
    elif since is not None:
        yield problem(
            "job-task-unknown",
            f"Job {job.pk} names the task {path}, which is known here, but workers have not found "
            f"it since {moment(since)}.",
            "Restart the workers: they run code from before the task was there.",
        )


def of_waiting(patient: Patient, job: Job, row: Any) -> Iterator[Finding]:
    """Yield what a job waits for."""
    open_ones = (
        Dependency.objects.using(patient.using)
        .filter(job_id=job.pk, state=int(DependencyState.OPEN))
        .select_related("parent")
        .order_by("pk")
    )
    parents = [each.parent for each in open_ones[: MOST_AWAITED + 1]]
    named = ", ".join(_described(each) for each in parents[:MOST_AWAITED])
    more = " and others" if len(parents) > MOST_AWAITED else ""
    if not parents:
        yield problem(
            "job-stateless",
            f"Job {job.pk} waits, and all that it has waited for has ended: nobody will make it "
            "ready.",
            "Somebody has changed rows by hand. Enqueue the task again, and discard this job.",
        )
        return
    failed = FailedExecution.objects.using(patient.using).filter(
        pk__in=[each.job_id for each in parents if each.job_id]
    )
    hint = "See what keeps these: ask the doctor for their ids."
    if failed.exists():
        hint = "One of these has failed: retry it, or cancel the batch."
    yield info("job-waiting", f"Job {job.pk} waits for the end of {named}{more}.", hint)


def _described(parent: Any) -> str:
    shown = f" ({name(parent.name)})" if parent.name else ""
    if parent.job_id is None:
        return f"a batch that is member {parent.pk}{shown} of batch {parent.batch_id}"
    return f"job {parent.job_id}{shown}"


def of_scheduled(patient: Patient, job: Job, row: Any) -> Iterator[Finding]:
    """Yield when a job is due, and why then."""
    due = portable.aware(row.due_at)
    left = due - patient.present
    when = f"it is due in {duration(left)}, at {moment(due)}"
    if left <= -LATE:
        when = f"it has been due for {duration(-left)}, since {moment(due)}"
        yield from _overdue(patient, job)
    elif not patient.live("dispatcher"):
        yield dispatchers.missing(f"Job {job.pk} is scheduled, and no dispatcher is alive for it.")
    yield from of_task(patient, job)
    yield _state(patient, job, when)


def _overdue(patient: Patient, job: Job) -> Iterator[Finding]:
    if not patient.is_alive:
        yield from none_alive(patient)
    elif not patient.live("dispatcher"):
        yield dispatchers.missing(f"Job {job.pk} is overdue, and no dispatcher is alive for it.")
    else:
        yield problem(
            "job-overdue",
            f"Job {job.pk} is overdue, although a dispatcher is alive.",
            "See in the log of the dispatcher what it fails at, and whether other processes hold "
            "locks on the tables of the queue for long.",
        )


def _state(patient: Patient, job: Job, when: str) -> Finding:
    metadata = JobMetadata.read(job.metadata)
    from ..features import findings

    if (found := findings.of_scheduled(job, metadata, when)) is not None:
        return found
    errors = errors_of(job.errors)
    if job.attempts and errors:
        return info(
            "job-retry",
            f"Job {job.pk} waits for attempt {job.attempts + 1} of {abs(job.max_attempts)}, after "
            f"{name(errors[-1][0])}; {when}.",
            f"It runs by itself then. To have it run at once: {patient.command('run-now', job.pk)}",
        )
    put_off = " It has put itself off." if metadata.snoozes else ""
    return info("job-scheduled", f"Job {job.pk} is scheduled; {when}.{put_off}")


def of_blocked(patient: Patient, job: Job, row: Any) -> Iterator[Finding]:
    """Yield whom a blocked job waits for, and what keeps that one."""
    using, key = patient.using, row.concurrency_key
    held = list(holders(patient, key).order_by("pk").values_list("pk", flat=True)[:MOST_HOLDERS])
    # In this order: it may have been admitted meanwhile.
    if not held and BlockedExecution.objects.using(using).filter(pk=job.pk).exists():
        yield is_stuck(patient, key, job.pk)
    yield from limits.of_keys(patient, {key: job.pk})
    claims = ClaimedExecution.objects.using(using).in_bulk(held)
    ready = ReadyExecution.objects.using(using).in_bulk(held)
    said = []
    for job_id in held:
        if (claim := claims.get(job_id)) is not None:
            process = patient.process(claim.process_id)
            since = between(claim.created_at, patient.present)
            said.append(f"job {job_id}, claimed {since} ago by {_who(process)}")
            if process is None or not process.is_live:
                yield _lost(patient, key, job_id, process)
        elif (waiting := ready.get(job_id)) is not None:
            said.append(f"job {job_id}, ready in queue {queues.quoted(waiting.queue_name)}")
            yield from _of_queue(patient, waiting.queue_name)
    yield from of_task(patient, job)
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
    return f"; and {many(BoundedCount(held - MOST_TOLD, held < MOST_HOLDERS), 'other')}"


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
    said = described(process)
    is_silent = process is not None and not process.is_live
    return f"{said}, which was heard {silent_for(process)}" if is_silent else said


def of_ready(patient: Patient, job: Job, row: Any) -> Iterator[Finding]:
    """Yield why a ready job has not been claimed."""
    queue = patient.queue(row.queue_name)
    if queue is not None and queue.is_paused:
        yield queues.is_paused(patient, queue)
    if not patient.is_alive:
        yield from none_alive(patient)
    elif queue is not None and not queue.workers:
        yield queues.is_unserved(patient, queue)
    yield from of_task(patient, job)
    yield _place(patient, job, row)


def _place(patient: Patient, job: Job, row: Any) -> Finding:
    rows = ReadyExecution.objects.using(patient.using).filter(queue_name=row.queue_name)
    # Two ranges of the index: with OR, a database may read the jobs behind this one as well.
    parts = (rows.filter(rank__lt=row.rank), rows.filter(rank=row.rank, turn__lt=row.turn))
    more_urgent, earlier = count_each(
        patient.using, [part.order_by("rank", "turn") for part in parts]
    )
    number = min(more_urgent.number + earlier.number, CAP)
    ahead = BoundedCount(number, more_urgent.exact and earlier.exact)
    return info(
        "job-ready",
        f"Job {job.pk} has been ready for {between(row.created_at, patient.present)}; "
        f"{many(ahead, 'job')} of queue {queues.quoted(row.queue_name)} before it. "
        f"{queues.load(patient, row.queue_name)}",
        "If it has to come sooner: a higher priority, a queue of its own, or more workers.",
    )
