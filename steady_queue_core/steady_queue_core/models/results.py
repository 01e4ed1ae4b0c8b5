"""Reading what became of a job."""

from __future__ import annotations

from .job import Job

MAX_ID = 2**63 - 1


def find_job(using: str, result_id: str) -> Job | None:
    """Return the job with the id of a task result, its claim and failure at hand."""
    if not (isinstance(result_id, str) and result_id.isascii() and result_id.isdigit()):
        return None
    if len(result_id) > 19 or int(result_id) > MAX_ID:
        return None
    jobs = Job.objects.using(using).select_related("claimedexecution", "failedexecution")
    return jobs.filter(pk=int(result_id)).first()
