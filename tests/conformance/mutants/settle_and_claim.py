"""The two in one, wrongly."""

from __future__ import annotations

from steady_queue_core.dialects import QueueSelector

from .mutant import commit, fails, rows, sqlite

both = sqlite.steady_queue_settle_and_claim
settle, claim = sqlite.steady_queue_settle, sqlite.steady_queue_claim


@fails("both_are_done_as_one_after_the_other", hook="settle_and_claim")
def forgets_to_settle(connection, outcomes, process, selector, limit):
    held = {outcome.job_id for outcome in outcomes}
    return held, claim(connection, process, selector, limit)


@fails("both_are_done_as_one_after_the_other", hook="settle_and_claim")
def ignores_the_fence(connection, outcomes, process, selector, limit):
    held, claims = both(connection, outcomes, process, selector, limit)
    return held | {outcome.job_id for outcome in outcomes}, claims


@fails("both_are_done_as_one_after_the_other", hook="settle_and_claim")
def takes_from_all_queues(connection, outcomes, process, selector, limit):
    return both(connection, outcomes, process, QueueSelector(), limit)


@fails("a_claim_that_comes_with_a_settlement_tells_as_much", hook="settle_and_claim")
def tells_less(connection, outcomes, process, selector, limit):
    held, claims = both(connection, outcomes, process, selector, limit)
    return held, [job._replace(max_attempts=1) for job in claims]


@fails("the_limit_and_paused_queues_count_here_too", hook="settle_and_claim")
def takes_one_for_each_it_settled(connection, outcomes, process, selector, limit):
    return both(connection, outcomes, process, selector, min(limit, len(outcomes)))


@fails("the_limit_and_paused_queues_count_here_too", hook="settle_and_claim")
def ignores_pauses(connection, outcomes, process, selector, limit):
    rows(connection, "Pause").delete()
    return both(connection, outcomes, process, selector, limit + 9)


@fails("a_released_job_may_be_claimed_at_once_with_the_next_token", hook="settle_and_claim")
def claims_before_it_settles(connection, outcomes, process, selector, limit):
    claims = claim(connection, process, selector, limit)
    return settle(connection, outcomes), claims


@fails("without_outcomes_or_jobs_there_is_nothing_to_tell", hook="settle_and_claim")
def tells_nothing_without_jobs(connection, outcomes, process, selector, limit):
    held, claims = both(connection, outcomes, process, selector, limit)
    return (held, claims) if claims else (set(), [])


@fails("a_process_that_is_not_registered_may_settle_but_gets_nothing", hook="settle_and_claim")
def settles_for_nobody_that_is_not_registered(connection, outcomes, process, selector, limit):
    if not rows(connection, "Process").filter(pk=process.id).exists():
        return set(), []
    return both(connection, outcomes, process, selector, limit)


@fails("both_join_the_callers_transaction", hook="settle_and_claim")
def commits_in_between(connection, outcomes, process, selector, limit):
    held = settle(connection, outcomes)
    commit(connection)
    return held, claim(connection, process, selector, limit)
