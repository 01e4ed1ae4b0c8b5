"""Jobs and outcomes for the dialects, made without tasks."""

from __future__ import annotations

from steady_queue_core.dialects import ClaimedJob, Ending, NewJob, Outcome


def new_job(queue_name: str, rank: int = 0) -> NewJob:
    """Return a job without arguments."""
    return NewJob(
        queue_name=queue_name, rank=rank, task_path="jobs.tasks.noop", backend_name="default",
        arguments='{"args":[],"kwargs":{}}',
    )  # fmt: skip


def finished(claim: ClaimedJob) -> Outcome:
    """Return the outcome of a job that ended well."""
    return Outcome(
        Ending.FINISHED, claim.job_id, claim.token, claim.queue_name, claim.rank,
        attempts=1, worker_ids='["benchmark"]', started_at=claim.claimed_at,
        last_attempted_at=claim.claimed_at, return_value="null", link=claim.link,
    )  # fmt: skip
