"""Claims that tell nothing of a request to end, or tell it of others; jobs that do not end."""

from __future__ import annotations

from .mutant import fails, rows, sqlite

follow, settle = sqlite.steady_queue_claim_followers, sqlite.steady_queue_settle
claim, both = sqlite.steady_queue_claim, sqlite.steady_queue_settle_and_claim


def without_requests(claims):
    return [each._replace(max_attempts=abs(each.max_attempts)) for each in claims]


@fails("a_job_that_is_cancelled_while_it_waits_is_not_claimed", hook="lock_rows")
def finds_no_rows_to_lock(connection, rows, wait):
    return rows.none()


@fails("a_job_that_is_cancelled_while_it_waits_is_not_claimed", hook="admit")
def admits_nobody(connection, keys):
    return 0


@fails("each_claim_tells_that_its_job_was_cancelled_while_it_ran", hook="claim")
def reads_the_number_of_attempts_without_its_sign(connection, process, selector, limit):
    return without_requests(claim(connection, process, selector, limit))


@fails("each_claim_tells_that_its_job_was_cancelled_while_it_ran", hook="settle")
def forgets_requests_with_the_claim(connection, outcomes):
    held = settle(connection, outcomes)
    for job in rows(connection, "Job").filter(pk__in=held):
        job.max_attempts = abs(job.max_attempts)
        job.save()
    return held


@fails("a_claim_that_comes_with_a_settlement_tells_it_too", hook="settle_and_claim")
def forgets_requests_on_the_way(connection, outcomes, process, selector, limit):
    held, claims = both(connection, outcomes, process, selector, limit)
    return held, without_requests(claims)


@fails("the_claim_of_a_follower_tells_that_it_was_cancelled", hook="claim_followers")
def forgets_requests_of_followers(connection, process, holders, limit):
    return without_requests(follow(connection, process, holders, limit))


@fails("a_cancelled_job_that_is_retried_may_run_again", hook="claim")
def takes_every_later_claim_for_cancelled(connection, process, selector, limit):
    claims = claim(connection, process, selector, limit)
    return [
        each._replace(max_attempts=-abs(each.max_attempts)) if each.token >> 33 else each
        for each in claims
    ]


@fails("a_job_that_finishes_although_it_was_cancelled_has_finished", hook="settle")
def settles_nothing_of_cancelled_jobs(connection, outcomes):
    asked = set(rows(connection, "Job").filter(max_attempts__lt=0).values_list("pk", flat=True))
    return settle(connection, [each for each in outcomes if each.job_id not in asked])
