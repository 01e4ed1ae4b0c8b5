"""Claimed jobs: by whom, and whether that process lives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..listings.wording import between, moment, name
from ..models import Job
from .claims import remedy
from .finding import Finding, info, problem
from .patient import Patient
from .processes import described, silent_for


def findings(patient: Patient, job: Job, row: Any) -> Iterator[Finding]:
    """Yield who runs a job."""
    process = next((each for each in patient.processes if each.pk == row.process_id), None)
    since = f"{between(row.created_at, patient.present)} ago, at {moment(row.created_at)}"
    who = "a process that is not registered" if process is None else described(process)
    claimed = f"Job {job.pk} ({name(job.task_path)}) was claimed by {who} {since}"
    if process is None:
        yield problem("claim-orphaned", f"{claimed}: it does not go on.", remedy(patient))
    elif not process.is_live:
        heard = silent_for(process)
        yield problem(
            "claim-stale",
            f"{claimed}, and that was heard {heard}: the job does not go on.",
            remedy(patient),
        )
    else:
        asked = " It was asked to end." if job.is_cancelled else ""
        yield info(
            "job-running",
            f"{claimed}, which was heard {silent_for(process)}; attempt {job.attempts + 1}.{asked}",
            "If it takes too long: kill -USR2 to its supervisor logs what it does. To end it: "
            f"{patient.command('cancel', job.pk)}",
        )
