"""Jobs that follow others wrongly, and permits that go astray on their way along a chain."""

from __future__ import annotations

from django.db import transaction

from steady_queue_core.dialects import Ending
from steady_queue_core.dialects.portable.models import model

from .mutant import commit, fails, rows, sqlite
from .settle import as_held, replaced

follow, settle = sqlite.steady_queue_claim_followers, sqlite.steady_queue_settle
admit, both = sqlite.steady_queue_admit, sqlite.steady_queue_settle_and_claim


def given_permits(connection, claims):
    """Give each claim a permit of its own."""
    for claim in claims:
        rows(connection, "Permit").get_or_create(
            job_id=claim.job_id, defaults={"key": claim.concurrency_key}
        )
    return claims


def held_again(connection, process, holders):
    """Make claims of these holders, with permits, whoever has them."""
    for holder in holders:
        claim = rows(connection, "ClaimedExecution").filter(pk=holder.job_id)
        claim.update(token=holder.token, process_id=process.id)
    return given_permits(connection, holders)


@fails("jobs_that_wait_follow_the_holder_in_their_order", hook="claim_followers")
def lets_the_oldest_follow(connection, process, holders, limit):
    waiting = rows(connection, "BlockedExecution")
    ranks = dict(waiting.values_list("pk", "rank"))
    waiting.update(rank=0)
    claims = follow(connection, process, holders, limit)
    for name in ("BlockedExecution", "ClaimedExecution"):
        for job_id, rank in ranks.items():
            rows(connection, name).filter(pk=job_id).update(rank=rank)
    return [claim._replace(rank=ranks[claim.job_id]) for claim in claims]


@fails("jobs_that_wait_follow_the_holder_in_their_order", hook="claim_followers")
def lets_one_more_follow(connection, process, holders, limit):
    return follow(connection, process, holders, limit + 1)


@fails("jobs_that_wait_follow_the_holder_in_their_order", "jobs_follow_several_holders_in_turn",
       hook="claim_followers")  # fmt: skip
def lets_all_follow_the_holder_itself(connection, process, holders, limit):
    claims = follow(connection, process, holders, limit)
    return [claim._replace(follows=holders[0].job_id) for claim in claims]


@fails("jobs_that_wait_follow_the_holder_in_their_order", "jobs_follow_several_holders_in_turn",
       hook="claim_followers")  # fmt: skip
def gives_followers_permits(connection, process, holders, limit):
    return given_permits(connection, follow(connection, process, holders, limit))


@fails("jobs_that_wait_follow_the_holder_in_their_order", hook="claim_followers")
def claims_for_nobody(connection, process, holders, limit):
    claims = follow(connection, process, holders, limit)
    taken = rows(connection, "ClaimedExecution").filter(pk__in=[claim.job_id for claim in claims])
    taken.update(process_id=0)
    return claims


@fails("the_claim_of_a_follower_tells_as_much_as_any", hook="claim_followers")
def tells_less(connection, process, holders, limit):
    return [claim._replace(max_attempts=1, arguments="{}")
            for claim in follow(connection, process, holders, limit)]  # fmt: skip


@fails("a_follower_given_back_waits_for_a_permit",
       "the_claim_of_a_follower_tells_as_much_as_any", hook="claim_followers")  # fmt: skip
def uses_tokens_again(connection, process, holders, limit):
    waiting = rows(connection, "BlockedExecution")
    tokens = dict(waiting.values_list("pk", "token"))
    claims = follow(connection, process, holders, limit)
    for claim in claims:
        taken = rows(connection, "ClaimedExecution").filter(pk=claim.job_id)
        taken.update(token=tokens[claim.job_id])
    return [claim._replace(token=tokens[claim.job_id]) for claim in claims]


@fails("a_job_of_another_queue_ends_the_chain", hook="claim_followers")
def passes_over_other_queues(connection, process, holders, limit):
    others = rows(connection, "BlockedExecution").exclude(queue_name=holders[0].queue_name)
    kept = list(others)
    others.delete()
    claims = follow(connection, process, holders, limit)
    model("BlockedExecution").objects.using(connection.alias).bulk_create(kept)
    return claims


@fails("nobody_follows_in_a_paused_queue", hook="claim_followers")
def serves_paused_queues(connection, process, holders, limit):
    rows(connection, "Pause").delete()
    return follow(connection, process, holders, limit)


@fails("nobody_follows_a_job_that_has_lost_its_claim_or_its_permit",
       "nobody_follows_the_claim_of_another_process", hook="claim_followers")  # fmt: skip
def takes_every_holder_for_one(connection, process, holders, limit):
    held_again(connection, process, holders)
    return follow(connection, process, holders, limit)


@fails("nobody_follows_while_there_are_more_permits_than_the_limit", hook="claim_followers")
def keeps_more_permits_than_the_limit(connection, process, holders, limit):
    limits = dict(rows(connection, "Semaphore").values_list("pk", "limit"))
    rows(connection, "Semaphore").update(limit=99)
    claims = follow(connection, process, holders, limit)
    for key, known in limits.items():
        rows(connection, "Semaphore").filter(pk=key).update(limit=known)
    return claims


@fails("jobs_follow_several_holders_in_turn", "each_key_has_a_chain_of_its_own",
       hook="claim_followers")  # fmt: skip
def knows_the_first_holder_only(connection, process, holders, limit):
    return follow(connection, process, holders[:1], limit)


@fails("each_key_has_a_chain_of_its_own", hook="claim_followers")
def mixes_up_keys(connection, process, holders, limit):
    keys = dict.fromkeys(holder.concurrency_key for holder in holders)
    found = {}
    for key in keys:
        if key is not None:
            found.setdefault(key.lower(), []).append(key)
    alike = [holder for holder in holders if holder.concurrency_key is not None
             and found[holder.concurrency_key.lower()][-1] == holder.concurrency_key]  # fmt: skip
    return follow(connection, process, alike, limit)


@fails("a_stray_row_ends_the_chain", hook="claim_followers")
def passes_over_stray_rows(connection, process, holders, limit):
    jobs = rows(connection, "Job").filter(finished_at=None)
    running = rows(connection, "ClaimedExecution").values("pk")
    strays = rows(connection, "BlockedExecution").exclude(
        pk__in=jobs.exclude(pk__in=running).values("pk")
    )
    strays._raw_delete(connection.alias)
    return follow(connection, process, holders, limit)


@fails("followers_are_claimed_in_the_callers_transaction", hook="claim_followers")
def commits_at_once(connection, process, holders, limit):
    claims = follow(connection, process, holders, limit)
    commit(connection)
    return claims


@fails("chains_of_several_threads_never_exceed_the_limits", hook="settle")
def never_ends_permits(connection, outcomes):
    kept = [outcome._replace(concurrency_key=None, heir=None) for outcome in outcomes]
    return settle(connection, kept)


@fails("a_permit_passes_to_the_heir", hook="settle")
def ends_permits_that_should_pass(connection, outcomes):
    return settle(connection, [outcome._replace(heir=None) for outcome in outcomes])


@fails("of_a_batch_only_the_holders_permit_passes", hook="settle_and_claim")
def loses_permits_on_their_way(connection, outcomes, process, selector, limit):
    held, claims = both(connection, outcomes, process, selector, limit)
    permits = rows(connection, "Permit").filter(pk__in=[o.heir[0] for o in outcomes if o.heir])
    permits.delete()
    return held, claims


@fails("a_permit_passes_to_the_heir", hook="settle")
def passes_only_what_has_finished(connection, outcomes):
    others = [ending for ending in Ending if ending is not Ending.FINISHED]
    return settle(connection, replaced(outcomes, *others, heir=None))


@fails("a_permit_ends_if_the_heir_has_lost_its_claim", hook="settle")
def leaves_permits_to_whoever_is_named(connection, outcomes):
    tokens = dict(rows(connection, "ClaimedExecution").values_list("pk", "token"))
    held = {o.job_id for o in outcomes if tokens.get(o.job_id) == o.token}
    with transaction.atomic(using=connection.alias):
        for outcome in outcomes:
            if outcome.heir is not None and outcome.job_id in held:
                permit = rows(connection, "Permit").filter(pk=outcome.job_id)
                permit.update(job_id=outcome.heir[0])
        return settle(connection, outcomes)


@fails("an_heir_that_ends_in_the_same_batch_takes_no_permit", hook="settle")
def passes_permits_before_it_looks(connection, outcomes):
    heirs = [outcome for outcome in outcomes if outcome.heir is not None]
    with transaction.atomic(using=connection.alias):
        for outcome in heirs:
            permit = rows(connection, "Permit").filter(pk=outcome.job_id)
            permit.update(job_id=outcome.heir[0])
        keys = {outcome.job_id: outcome.concurrency_key for outcome in outcomes}
        held = settle(connection, replaced(outcomes, *Ending, concurrency_key=None))
        admit(connection, sorted(set(keys.values())))
        return held


@fails("a_claim_that_was_lost_passes_no_permit", hook="settle")
def passes_the_permits_of_others(connection, outcomes):
    return settle(connection, as_held(connection, outcomes))


@fails("an_heir_takes_one_permit_only", hook="settle")
def leaves_the_permit_of_an_heir_that_has_one(connection, outcomes):
    taken = [o for o in outcomes if o.heir and rows(connection, "Permit").filter(pk=o.heir[0])]
    kept = list(rows(connection, "Permit").filter(pk__in=[outcome.job_id for outcome in taken]))
    held = settle(connection, replaced(outcomes, *Ending, concurrency_key=None))
    model("Permit").objects.using(connection.alias).bulk_create(kept, ignore_conflicts=True)
    return held


@fails("a_follower_given_back_waits_for_a_permit",
       "whoever_has_the_claims_of_a_chain_ends_them_in_any_order", hook="settle")  # fmt: skip
def makes_followers_ready(connection, outcomes):
    return settle(connection, replaced(outcomes, Ending.RELEASED, concurrency_key=None))
