"""Claiming given rows, for mutants that choose them in their own way."""

from __future__ import annotations

from steady_queue_core.dialects import Ending, Outcome, portable
from steady_queue_core.dialects.portable import polling
from steady_queue_core.dialects.portable.models import model

from .mutant import rows, sqlite


def take(connection, process, picked):
    """Move ``picked``, ready rows, to claimed as they come; tell of their jobs."""
    with sqlite.steady_queue_transaction(connection):
        present = polling.current_time(connection, polling.now(connection))
        taken = list(picked)
        tokens = {row.pk: portable.next_token(row.token) for row in taken}
        for row in taken:
            rows(connection, "ReadyExecution").filter(pk=row.pk).delete()
            model("ClaimedExecution")(
                job_id=row.pk, queue_name=row.queue_name, rank=row.rank, token=tokens[row.pk],
                created_at=present, process_id=process.id,
            ).save(using=connection.alias, force_insert=True)  # fmt: skip
        jobs = rows(connection, "Job").in_bulk([row.pk for row in taken])
    return [polling._claimed_job(jobs[row.pk], tokens[row.pk], present) for row in taken]


def give_back(connection, jobs):
    """Release claims."""
    outcomes = [
        Outcome(Ending.RELEASED, job.job_id, job.token, job.queue_name, job.rank) for job in jobs
    ]
    sqlite.steady_queue_settle(connection, outcomes)
