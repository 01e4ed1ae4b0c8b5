"""Waiting jobs: which members of their batch have to end first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..dialects import DependencyState
from ..listings.wording import name
from ..models import Dependency, FailedExecution, Job
from .finding import Finding, info, problem
from .patient import Patient

#: So many of these are named.
MOST = 5


def findings(patient: Patient, job: Job, row: Any) -> Iterator[Finding]:
    """Yield what a job waits for."""
    open_ones = (
        Dependency.objects.using(patient.using)
        .filter(job_id=job.pk, state=int(DependencyState.OPEN))
        .select_related("parent")
        .order_by("pk")
    )
    parents = [each.parent for each in open_ones[: MOST + 1]]
    named = ", ".join(_described(each) for each in parents[:MOST])
    more = " and others" if len(parents) > MOST else ""
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
