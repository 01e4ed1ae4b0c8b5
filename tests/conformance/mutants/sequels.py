"""Metadata lost, and outcomes whose sequels come apart from them."""

from __future__ import annotations

from dataclasses import replace

from .mutant import commit, fails, sqlite


@fails("a_claim_tells_the_metadata_of_a_job", hook="claim")
def claims_without_metadata(connection, process, selector, limit):
    claims = sqlite.steady_queue_claim(connection, process, selector, limit)
    return [claim._replace(metadata=None) for claim in claims]


@fails("the_claim_of_a_follower_tells_its_metadata", hook="claim_followers")
def claims_followers_without_metadata(connection, process, holders, limit):
    claims = sqlite.steady_queue_claim_followers(connection, process, holders, limit)
    return [claim._replace(metadata=None) for claim in claims]


@fails("a_claim_tells_the_metadata_of_a_job", hook="enqueue")
def forgets_the_metadata_of_jobs_of_later(connection, jobs):
    kept = [job if job.delay is None else replace(job, metadata=None) for job in jobs]
    return sqlite.steady_queue_enqueue(connection, kept)


@fails("metadata_that_an_outcome_does_not_change_stay", hook="settle")
def empties_the_metadata(connection, outcomes):
    held = sqlite.steady_queue_settle(connection, outcomes)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE steady_queue_jobs SET metadata = NULL")
    return held


@fails("a_claim_that_is_lost_has_no_sequel", hook="settle")
def says_that_every_claim_was_held(connection, outcomes):
    sqlite.steady_queue_settle(connection, outcomes)
    return {outcome.job_id for outcome in outcomes}


@fails("the_sequel_of_an_outcome_is_stored", hook="settle")
def says_that_no_claim_was_held(connection, outcomes):
    sqlite.steady_queue_settle(connection, outcomes)
    return set()


@fails("an_outcome_and_its_sequel_are_one_transaction", hook="settle")
def commits_each_settlement(connection, outcomes):
    held = sqlite.steady_queue_settle(connection, outcomes)
    commit(connection)
    return held


@fails("the_next_claim_may_take_what_an_outcome_entails", hook="claim")
def claims_nothing_in_a_transaction(connection, process, selector, limit):
    if connection.in_atomic_block:
        return []
    return sqlite.steady_queue_claim(connection, process, selector, limit)
