"""Semaphores that are taken at their word, or missed."""

from __future__ import annotations

from .mutant import fails, rows, sqlite
from .permits import limited, only_known

enqueue, settle = sqlite.steady_queue_enqueue, sqlite.steady_queue_settle
claim = sqlite.steady_queue_claim


@fails("a_holder_counts_though_the_semaphore_is_gone", hook="enqueue")
def forgets_the_holders_with_the_semaphore(connection, jobs):
    keys = [job.limit.key for job in jobs if job.limit]
    unknown = set(keys) - set(only_known(connection, keys))
    rows(connection, "Permit").filter(key__in=unknown).delete()
    return enqueue(connection, jobs)


@fails("a_claim_ends_though_the_semaphore_is_gone",
       "who_comes_back_is_let_in_though_the_semaphore_is_gone", hook="settle")  # fmt: skip
def cannot_do_without_a_semaphore(connection, outcomes):
    for outcome in outcomes:
        if outcome.concurrency_key:
            rows(connection, "Semaphore").get(pk=outcome.concurrency_key)
    return settle(connection, outcomes)


@fails("who_comes_back_is_let_in_though_the_semaphore_is_gone", hook="settle")
def leaves_who_has_no_semaphore_outside(connection, outcomes):
    keys = {outcome.concurrency_key for outcome in outcomes}
    unknown = keys - set(only_known(connection, keys))
    held = settle(connection, outcomes)
    outside = [outcome.job_id for outcome in outcomes if outcome.concurrency_key in unknown]
    rows(connection, "ReadyExecution").filter(pk__in=outside).delete()
    return held


@fails("a_job_of_later_says_nothing_of_the_limit_yet", hook="enqueue")
def takes_the_limit_of_every_job(connection, jobs):
    stored = enqueue(connection, jobs)
    for job in jobs:
        if job.limit:
            rows(connection, "Semaphore").filter(pk=job.limit.key).update(limit=job.limit.to)
    return stored


@fails("a_larger_limit_lets_in_who_is_not_to_wait", hook="enqueue")
def discards_by_the_limit_as_it_was(connection, jobs):
    [job] = jobs
    [known] = rows(connection, "Semaphore").values_list("limit", flat=True) or [job.limit.to]
    return enqueue(connection, limited([job], to=known) if job.limit.discards else jobs)


@fails("a_larger_limit_lets_in_who_is_not_to_wait", hook="enqueue")
def makes_room_for_who_is_not_to_wait(connection, jobs):
    return [new for job in jobs for new in enqueue(
        connection, limited([job], to=job.limit.to + 1) if job.limit.discards else [job]
    )]  # fmt: skip


@fails("who_is_let_in_is_claimed_in_its_turn", hook="settle_and_claim")
def claims_before_it_settles(connection, outcomes, process, selector, limit):
    claims = claim(connection, process, selector, limit)
    held = settle(connection, outcomes)
    return held, claims + claim(connection, process, selector, limit - len(claims))
