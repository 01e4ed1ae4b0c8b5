"""Jobs taken wrongly."""

from __future__ import annotations

from datetime import timedelta
from time import sleep

from steady_queue_core.dialects import QueueSelector

from .mutant import commit, fails, rows, sqlite
from .taking import give_back, take

claim = sqlite.steady_queue_claim


@fails("a_claim_tells_all_that_was_enqueued", hook="claim")
def tells_the_time_of_the_claim_as_that_of_the_enqueue(connection, process, selector, limit):
    taken = claim(connection, process, selector, limit)
    return [job._replace(enqueued_at=job.claimed_at) for job in taken]


@fails("a_claim_tells_all_that_was_enqueued", hook="claim")
def tells_local_time(connection, process, selector, limit):
    taken = claim(connection, process, selector, limit)
    return [job._replace(claimed_at=job.claimed_at + timedelta(hours=2)) for job in taken]


@fails("a_claim_tells_of_earlier_attempts", "errors_of_a_retried_job_are_told_exactly",
       hook="claim")  # fmt: skip
def tells_nothing_of_earlier_attempts(connection, process, selector, limit):
    taken = claim(connection, process, selector, limit)
    return [job._replace(attempts=0, errors=None, started_at=None) for job in taken]


@fails("a_claimed_job_moves_from_ready_to_claimed", hook="claim")
def forgets_who_claimed(connection, process, selector, limit):
    taken = claim(connection, process, selector, limit)
    rows(connection, "ClaimedExecution").update(process_id=0)
    return taken


@fails("a_claimed_job_moves_from_ready_to_claimed", "a_claim_takes_no_more_than_its_limit",
       hook="claim")  # fmt: skip
def gives_a_job_twice(connection, process, selector, limit):
    before = {row.pk: row for row in rows(connection, "ReadyExecution")}
    rows(connection, "ClaimedExecution").delete()
    taken = claim(connection, process, selector, limit)
    for job in taken:
        before[job.job_id].save(using=connection.alias, force_insert=True)
    return taken


@fails("the_token_is_greater_than_the_ready_rows", "the_token_grows_with_each_claim_of_a_job",
       hook="claim")  # fmt: skip
def drops_the_token(connection, process, selector, limit):
    taken = claim(connection, process, selector, limit)
    rows(connection, "ClaimedExecution").update(token=1)
    return [job._replace(token=1) for job in taken]


def with_tokens(connection, jobs, token):
    """Claim ``jobs`` under the tokens that ``token(job)`` gives."""
    for job in jobs:
        rows(connection, "ClaimedExecution").filter(pk=job.job_id).update(token=token(job))
    return [job._replace(token=token(job)) for job in jobs]


@fails("an_earlier_life_of_the_database_has_given_out_other_tokens",
       "an_outcome_of_an_earlier_life_of_the_database_changes_nothing", hook="claim")  # fmt: skip
def only_counts_the_claims(connection, process, selector, limit):
    taken = claim(connection, process, selector, limit)
    return with_tokens(connection, taken, lambda job: job.token >> 32 << 32)


@fails("the_token_grows_with_each_claim_of_a_job", hook="claim")
def draws_tokens_by_lot_alone(connection, process, selector, limit):
    taken = claim(connection, process, selector, limit)
    return with_tokens(connection, taken, lambda job: (1 << 32) + job.token % (1 << 32))


@fails("a_process_of_an_earlier_life_gets_nothing_under_the_id_of_another", hook="claim")
def knows_processes_by_their_ids_alone(connection, process, selector, limit):
    registered = rows(connection, "Process").filter(pk=process.id).first()
    known = registered.identity if registered else process
    return claim(connection, known, selector, limit)


@fails("only_ready_jobs_are_claimed", hook="claim")
def takes_due_jobs_from_the_schedule(connection, process, selector, limit):
    sqlite.steady_queue_dispatch(connection, limit)
    return claim(connection, process, selector, limit)


@fails("an_empty_queue_gives_nothing", hook="claim")
def takes_from_elsewhere_when_there_is_nothing(connection, process, selector, limit):
    taken = claim(connection, process, selector, limit)
    return taken or claim(connection, process, QueueSelector(), limit)


@fails("a_process_that_is_not_registered_gets_nothing", hook="claim")
def serves_anybody(connection, process, selector, limit):
    return take(connection, process, rows(connection, "ReadyExecution").order_by("pk")[:limit])


@fails("a_claim_takes_no_more_than_its_limit", "the_limit_spans_the_queues", hook="claim")
def exceeds_the_limit(connection, process, selector, limit):
    return claim(connection, process, selector, limit and limit + 1)


@fails("a_limit_of_nothing_takes_nothing", hook="claim")
def takes_a_limit_of_nothing_for_none(connection, process, selector, limit):
    return claim(connection, process, selector, limit or 1000)


@fails("a_claim_that_is_rolled_back_puts_the_jobs_back",
       "a_claim_joins_the_callers_transaction", hook="claim")  # fmt: skip
def commits_at_once(connection, process, selector, limit):
    taken = claim(connection, process, selector, limit)
    commit(connection)
    return taken


@fails("every_job_goes_to_exactly_one_of_many_threads",
       "every_job_goes_to_exactly_one_of_many_processes", hook="claim")  # fmt: skip
def looks_before_it_has_the_lock(connection, process, selector, limit):
    seen = list(rows(connection, "ReadyExecution").order_by("pk")[:limit])
    sleep(0.02)
    return take(connection, process, seen)


@fails("every_job_goes_to_exactly_one_of_many_threads", hook="claim")
def loses_a_job_now_and_then(connection, process, selector, limit):
    taken = claim(connection, process, selector, limit)
    return [job for job in taken if job.job_id % 7]


@fails("every_job_goes_to_exactly_one_of_many_threads", hook="claim")
def claims_for_the_first_process(connection, process, selector, limit):
    first = rows(connection, "Process").order_by("pk").first()
    return claim(connection, first.identity if first else process, selector, limit)


@fails("a_claim_takes_no_more_than_its_limit", hook="claim")
def gives_back_what_it_took(connection, process, selector, limit):
    taken = claim(connection, process, selector, limit)
    give_back(connection, taken)
    return taken
