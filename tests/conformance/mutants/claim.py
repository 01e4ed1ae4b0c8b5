"""Jobs taken wrongly."""

from __future__ import annotations

from datetime import timedelta
from time import sleep

from django.db.models import F

from steady_queue_core.dialects import QueueSelector

from .mutant import commit, fails, rows, sqlite
from .taking import give_back, take

claim = sqlite.steady_queue_claim


@fails("a_claim_tells_all_that_was_enqueued", hook="claim")
def tells_the_time_of_the_claim_as_that_of_the_enqueue(connection, process_id, selector, limit):
    taken = claim(connection, process_id, selector, limit)
    return [job._replace(enqueued_at=job.claimed_at) for job in taken]


@fails("a_claim_tells_all_that_was_enqueued", hook="claim")
def tells_local_time(connection, process_id, selector, limit):
    taken = claim(connection, process_id, selector, limit)
    return [job._replace(claimed_at=job.claimed_at + timedelta(hours=2)) for job in taken]


@fails("a_claim_tells_of_earlier_attempts", "errors_of_a_retried_job_are_told_exactly",
       hook="claim")  # fmt: skip
def tells_nothing_of_earlier_attempts(connection, process_id, selector, limit):
    taken = claim(connection, process_id, selector, limit)
    return [job._replace(attempts=0, errors=None, started_at=None) for job in taken]


@fails("a_claimed_job_moves_from_ready_to_claimed", hook="claim")
def forgets_who_claimed(connection, process_id, selector, limit):
    taken = claim(connection, process_id, selector, limit)
    rows(connection, "ClaimedExecution").update(process_id=0)
    return taken


@fails("a_claimed_job_moves_from_ready_to_claimed", "a_claim_takes_no_more_than_its_limit",
       hook="claim")  # fmt: skip
def gives_a_job_twice(connection, process_id, selector, limit):
    before = {row.pk: row for row in rows(connection, "ReadyExecution")}
    rows(connection, "ClaimedExecution").delete()
    taken = claim(connection, process_id, selector, limit)
    for job in taken:
        before[job.job_id].save(using=connection.alias, force_insert=True)
    return taken


@fails("the_token_is_the_ready_rows_plus_one", "the_token_grows_with_each_claim_of_a_job",
       hook="claim")  # fmt: skip
def drops_the_token(connection, process_id, selector, limit):
    taken = claim(connection, process_id, selector, limit)
    rows(connection, "ClaimedExecution").update(token=1)
    return [job._replace(token=1) for job in taken]


@fails("a_claim_tells_all_that_was_enqueued", hook="claim")
def counts_the_token_a_claim_late(connection, process_id, selector, limit):
    taken = claim(connection, process_id, selector, limit)
    rows(connection, "ClaimedExecution").update(token=F("token") - 1)
    return [job._replace(token=job.token - 1) for job in taken]


@fails("only_ready_jobs_are_claimed", hook="claim")
def takes_due_jobs_from_the_schedule(connection, process_id, selector, limit):
    sqlite.steady_queue_dispatch(connection, limit)
    return claim(connection, process_id, selector, limit)


@fails("an_empty_queue_gives_nothing", hook="claim")
def takes_from_elsewhere_when_there_is_nothing(connection, process_id, selector, limit):
    taken = claim(connection, process_id, selector, limit)
    return taken or claim(connection, process_id, QueueSelector(), limit)


@fails("a_process_that_is_not_registered_gets_nothing", hook="claim")
def serves_anybody(connection, process_id, selector, limit):
    return take(connection, process_id, rows(connection, "ReadyExecution").order_by("pk")[:limit])


@fails("a_claim_takes_no_more_than_its_limit", "the_limit_spans_the_queues", hook="claim")
def exceeds_the_limit(connection, process_id, selector, limit):
    return claim(connection, process_id, selector, limit and limit + 1)


@fails("a_limit_of_nothing_takes_nothing", hook="claim")
def takes_a_limit_of_nothing_for_none(connection, process_id, selector, limit):
    return claim(connection, process_id, selector, limit or 1000)


@fails("a_claim_that_is_rolled_back_puts_the_jobs_back",
       "a_claim_joins_the_callers_transaction", hook="claim")  # fmt: skip
def commits_at_once(connection, process_id, selector, limit):
    taken = claim(connection, process_id, selector, limit)
    commit(connection)
    return taken


@fails("every_job_goes_to_exactly_one_of_many_threads",
       "every_job_goes_to_exactly_one_of_many_processes", hook="claim")  # fmt: skip
def looks_before_it_has_the_lock(connection, process_id, selector, limit):
    seen = list(rows(connection, "ReadyExecution").order_by("pk")[:limit])
    sleep(0.02)
    return take(connection, process_id, seen)


@fails("every_job_goes_to_exactly_one_of_many_threads", hook="claim")
def loses_a_job_now_and_then(connection, process_id, selector, limit):
    taken = claim(connection, process_id, selector, limit)
    return [job for job in taken if job.job_id % 7]


@fails("every_job_goes_to_exactly_one_of_many_threads", hook="claim")
def claims_for_the_first_process(connection, process_id, selector, limit):
    first = rows(connection, "Process").order_by("pk").values_list("pk", flat=True).first()
    return claim(connection, first or process_id, selector, limit)


@fails("a_claim_takes_no_more_than_its_limit", hook="claim")
def gives_back_what_it_took(connection, process_id, selector, limit):
    taken = claim(connection, process_id, selector, limit)
    give_back(connection, taken)
    return taken
