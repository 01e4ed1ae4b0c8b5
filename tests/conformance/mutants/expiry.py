"""Claims that tell wrongly since when their jobs have waited for their start."""

from __future__ import annotations

from datetime import timedelta

from steady_queue_core.dialects import Ending

from .mutant import fails, rows, sqlite

follow, settle = sqlite.steady_queue_claim_followers, sqlite.steady_queue_settle
claim, both = sqlite.steady_queue_claim, sqlite.steady_queue_settle_and_claim


@fails("a_claim_tells_how_long_its_job_has_waited_for_its_start", hook="claim")
def counts_from_the_claim(connection, process, selector, limit):
    claims = claim(connection, process, selector, limit)
    return [each._replace(enqueued_at=each.claimed_at) for each in claims]


@fails("a_claim_tells_how_long_its_job_has_waited_for_its_start", hook="claim")
def claims_by_a_clock_that_is_slow(connection, process, selector, limit):
    claims = claim(connection, process, selector, limit)
    return [each._replace(claimed_at=each.claimed_at - timedelta(hours=1)) for each in claims]


@fails("a_claim_tells_how_long_its_job_has_waited_for_its_start", hook="settle")
def takes_a_claim_for_a_start(connection, outcomes):
    held = settle(connection, outcomes)
    for outcome in outcomes:
        if outcome.ending is Ending.RELEASED:
            job = rows(connection, "Job").get(pk=outcome.job_id)
            job.started_at = job.enqueued_at
            job.save()
    return held


@fails("a_claim_with_a_settlement_tells_how_long_its_job_has_waited", hook="settle_and_claim")
def counts_from_the_settlement(connection, outcomes, process, selector, limit):
    held, claims = both(connection, outcomes, process, selector, limit)
    return held, [each._replace(enqueued_at=each.claimed_at) for each in claims]


@fails("a_follower_tells_how_long_it_has_waited", hook="claim_followers")
def counts_from_the_claim_of_the_holder(connection, process, holders, limit):
    claims = follow(connection, process, holders, limit)
    return [each._replace(enqueued_at=holders[0].claimed_at) for each in claims]


@fails("a_job_that_has_started_once_has_started", hook="settle")
def forgets_the_start_of_a_job_to_retry(connection, outcomes):
    return settle(connection, [
        each._replace(started_at=None) if each.ending is Ending.RETRIED else each
        for each in outcomes
    ])  # fmt: skip
