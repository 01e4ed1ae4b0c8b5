"""Operations that are several."""

from __future__ import annotations

from django.db import DatabaseError

from steady_queue_core.dialects import Dispatched

from .mutant import fails, rows, sqlite

OWN = "a_job_lives_once_wherever_its_transactions_are_aborted"
CALLERS = "a_job_lives_once_wherever_those_of_the_caller_are_aborted"


@fails(OWN, hook="enqueue")
def enqueues_one_after_the_other(connection, jobs):
    return [new for job in jobs for new in sqlite.steady_queue_enqueue(connection, [job])]


@fails(OWN, CALLERS, hook="dispatch")
def takes_an_error_for_nothing_to_do(connection, limit):
    try:
        return sqlite.steady_queue_dispatch(connection, limit)
    except DatabaseError:
        return Dispatched(0, None)


@fails("jobs_of_one_call_keep_their_ids_whatever_comes_between", hook="enqueue")
def takes_the_newest_ids(connection, jobs):
    new = sqlite.steady_queue_enqueue(connection, jobs)
    newest = rows(connection, "Job").order_by("-pk").values_list("pk", flat=True)[: len(new)]
    return [each._replace(job_id=job_id) for each, job_id in zip(new, sorted(newest), strict=True)]
