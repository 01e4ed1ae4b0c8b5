"""Reads the rows of a list of jobs, without columns that may be large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Left

from ..dialects.database import Database
from ..models import Job, Process
from .damage import DAMAGED, read_each
from .states import ALL, FAILED, STATES, WAITING, State

COLUMNS = (
    "queue_name",
    "task_path",
    "rank",
    "max_attempts",
    "attempts",
    "enqueued_at",
    "started_at",
    "last_attempted_at",
    "finished_at",
)
#: Columns that may hold megabytes.
LARGE = ("arguments", "metadata", "worker_ids", "errors", "return_value")
#: The columns shown of each execution.
RELATED = {
    "readyexecution": ("created_at",),
    "scheduledexecution": ("due_at",),
    "blockedexecution": ("created_at", "concurrency_key"),
    "waitingexecution": ("created_at", "width"),
    "claimedexecution": ("created_at", "process_id"),
    "failedexecution": ("created_at", "exception_class", "fingerprint"),
}
#: The columns shown of what a running job has told of its progress.
PROGRESS = ("done", "total", "text", "updated_at")
#: Maximum length of an error message in a list.
MESSAGE = 200


def read_jobs(rows: QuerySet[Any], state: State, ids: Sequence[int]) -> list[Any]:
    """Return the ``rows`` with these ids, in this order, without those deleted meanwhile.

    Each has the database's ``present`` time and, if it is running, its ``process``.
    """
    if not ids:
        return []
    found = read_each(_with_columns(rows, state), ids)
    jobs = [found[each] or damaged(each) for each in ids if each in found]
    for job in jobs:
        _name_process(job)
    return jobs


def read_briefly(rows: QuerySet[Any], ids: Sequence[int]) -> list[Any]:
    """Return the ``rows`` with these ids, without large columns, in no particular order."""
    found = read_each(rows.select_related(None).defer(*LARGE), ids)
    return [row or damaged(key) for key, row in found.items()]


def state_of(job: Job) -> State:
    """Return the state of a job that was read with all its executions."""
    for state in STATES.values():
        if state.relation is not None and getattr(job, state.relation, None) is not None:
            return state
    return STATES["finished"] if job.finished_at is not None else ALL


def _with_columns(rows: QuerySet[Any], state: State) -> QuerySet[Any]:
    relations = list(RELATED) if state is ALL else [state.relation] if state.relation else []
    columns = [f"{relation}__{column}" for relation in relations for column in RELATED[relation]]
    rows = rows.select_related(None).annotate(present=Database.of(rows.db).now())
    if "claimedexecution" in relations:
        process = Process.objects.using(rows.db).filter(pk=OuterRef("claimedexecution__process_id"))
        rows = rows.annotate(process_name=Subquery(process.values("name")[:1]))
    if state is FAILED:
        rows = rows.annotate(message=Left(F("failedexecution__message"), MESSAGE))
    if state.name == "running":
        relations.append("checkpoint")
        columns += [f"checkpoint__{column}" for column in PROGRESS]
    if state is WAITING:
        relations.append("membership")
        columns.append("membership__batch_id")
    if relations:
        rows = rows.select_related(*relations)
    return rows.only(*COLUMNS, *columns)


def damaged(job_id: int) -> Any:
    """Return a stand-in for a job whose row is damaged, enough to find and discard it."""
    job: Any = Job(pk=job_id, task_path=DAMAGED)
    job.present, job.message = None, ""
    return job


def _name_process(job: Any) -> None:
    claim = job._state.fields_cache.get("claimedexecution")
    if claim is not None:
        claim.process = job.process_name or f"process-{claim.process_id}"
