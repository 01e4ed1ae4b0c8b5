"""Claiming given rows, for mutants that choose them in their own way."""

from __future__ import annotations

from steady_queue_core.dialects import Ending, Outcome, portable
from steady_queue_core.dialects.portable.models import moved

from .mutant import rows, sqlite


def take(connection, process, picked):
    """Move ``picked``, ready rows, to claimed as they come; tell of their jobs."""
    with sqlite.steady_queue_transaction(connection):
        present = portable.current_time(connection, portable.now(connection))
        taken = []
        for row in list(picked):
            rows(connection, "ReadyExecution").filter(pk=row.pk).delete()
            token = portable.next_token(row.token)
            claim = moved("ClaimedExecution", row, token, present, process_id=process.id)
            claim.save(using=connection.alias, force_insert=True)
            taken.append(claim)
        jobs = rows(connection, "Job").in_bulk([row.pk for row in taken])
    return [portable.claimed_job(row, jobs[row.pk], present) for row in taken]


def give_back(connection, jobs):
    """Release claims."""
    outcomes = [
        Outcome(Ending.RELEASED, job.job_id, job.token, job.queue_name, job.rank) for job in jobs
    ]
    sqlite.steady_queue_settle(connection, outcomes)
