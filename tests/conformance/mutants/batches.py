"""Members of batches that are ended wrongly, and jobs that do not wait."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

from steady_queue_core.dialects import portable

from .mutant import commit, fails, sqlite

enqueue, settle = sqlite.steady_queue_enqueue, sqlite.steady_queue_settle
dispatch, lock_rows = sqlite.steady_queue_dispatch, sqlite.steady_queue_lock_rows


@fails("a_job_that_waits_has_no_execution", hook="enqueue")
def waits_for_nothing(connection, jobs):
    return enqueue(connection, [replace(job, waits=False) for job in jobs])


@fails("a_job_that_waits_has_no_execution", hook="enqueue")
def forgets_the_limits_of_jobs_that_wait(connection, jobs):
    return enqueue(connection, [replace(job, limit=None) if job.waits else job for job in jobs])


@fails("a_job_that_waits_has_no_execution", hook="enqueue")
def forgets_the_times_of_jobs_that_wait(connection, jobs):
    return enqueue(connection, [replace(job, run_at=None) if job.waits else job for job in jobs])


@fails("the_last_member_ends_its_batch", "a_failure_is_counted",
       "a_waiting_job_moves_on_after_the_last_member",
       "a_job_that_is_not_to_run_is_asked_to_end", "a_waiting_job_with_a_limit_is_dispatched",
       "a_batch_within_a_batch_is_one_member", "a_batch_that_is_not_complete_does_not_end",
       "a_job_that_has_not_ended_keeps_its_batch_open",
       "the_last_two_members_do_not_overlook_each_other",
       "members_that_end_at_once_end_their_batch_once", hook="settle")  # fmt: skip
def says_that_no_claim_was_held(connection, outcomes):
    settle(connection, outcomes)
    return set()


@fails("a_lost_claim_ends_no_member", hook="settle")
def says_that_every_claim_was_held(connection, outcomes):
    settle(connection, outcomes)
    return {outcome.job_id for outcome in outcomes}


@fails("the_end_of_a_batch_is_the_transaction_of_its_last_member", hook="settle")
def commits_what_it_settles(connection, outcomes):
    held = settle(connection, outcomes)
    commit(connection)
    return held


@fails("a_member_that_is_refused_when_it_is_due_ends_its_batch", hook="dispatch")
def tells_no_batch_of_what_it_discards(connection, limit):
    with mock.patch.object(portable, "end_discarded"):
        return dispatch(connection, limit)


@fails("a_refusal_of_members_that_is_rolled_back_ends_no_batch", hook="dispatch")
def ends_what_it_discards_later(connection, limit):
    with mock.patch.object(portable, "end_discarded") as end:
        dispatched = dispatch(connection, limit)
    for (_, jobs), _ in end.call_args_list:
        portable.end_discarded(connection, jobs)
    return dispatched


@fails("the_last_member_ends_its_batch", hook="lock_rows")
def locks_no_batch(connection, rows, wait):
    return rows.none() if rows.model.__name__ == "JobBatch" else lock_rows(connection, rows, wait)


@fails("the_last_member_ends_its_batch", hook="lock_rows")
def locks_rows_that_it_was_not_asked_for(connection, rows, wait):
    if rows.model.__name__ == "BatchMember":
        rows = rows.model.objects.using(connection.alias).all()
    return lock_rows(connection, rows, wait)
