"""Claims ended wrongly."""

from __future__ import annotations

from datetime import timedelta
from time import sleep

from django.db import DatabaseError
from django.db.models import F

from steady_queue_core.dialects import Ending, portable
from steady_queue_core.dialects.portable.settle import end_claim

from .mutant import commit, fails, rows, shorten, sqlite

settle = sqlite.steady_queue_settle


def replaced(outcomes, *endings, **changes):
    """Return ``outcomes``, those of ``endings`` with other fields."""
    return [o._replace(**changes) if o.ending in endings else o for o in outcomes]


def instead(connection, outcomes, ending, other):
    """Settle outcomes of one ending as if they had another."""
    return settle(connection, replaced(outcomes, ending, ending=other))


def as_held(connection, outcomes):
    """Return ``outcomes`` with the tokens of the claims that there are."""
    tokens = dict(rows(connection, "ClaimedExecution").values_list("pk", "token"))
    return [o._replace(token=tokens.get(o.job_id, o.token)) for o in outcomes]


@fails("a_finished_job_is_completed_with_its_result", hook="settle")
def forgets_the_return_value(connection, outcomes):
    return settle(connection, replaced(outcomes, Ending.FINISHED, return_value=None))


@fails("a_finished_job_is_completed_with_its_result", hook="settle")
def forgets_when_it_started(connection, outcomes):
    return settle(connection, replaced(outcomes, Ending.FINISHED, started_at=None))


@fails("a_finished_job_is_completed_with_its_result", hook="settle")
def finishes_without_a_time(connection, outcomes):
    held = settle(connection, outcomes)
    rows(connection, "Job").filter(pk__in=held).update(finished_at=None)
    return held


@fails("a_finished_job_is_completed_with_its_result", "every_instant_is_taken_from_that_clock",
       hook="settle")  # fmt: skip
def finishes_by_another_clock(connection, outcomes):
    held = settle(connection, outcomes)
    for job in rows(connection, "Job").filter(pk__in=held, finished_at__isnull=False):
        job.finished_at += timedelta(hours=5)
        job.save()
    return held


@fails("a_finished_job_is_completed_with_its_result", hook="settle")
def does_not_count_attempts(connection, outcomes):
    return settle(connection, [outcome._replace(attempts=0) for outcome in outcomes])


@fails("a_finished_job_that_is_not_preserved_is_deleted", hook="settle")
def preserves_every_job(connection, outcomes):
    return settle(connection, [outcome._replace(preserve=True) for outcome in outcomes])


@fails("a_finished_job_that_is_not_preserved_is_deleted", hook="settle")
def deletes_the_job_and_keeps_the_claim(connection, outcomes):
    gone = [o.job_id for o in outcomes if o.ending is Ending.FINISHED and not o.preserve]
    kept = list(rows(connection, "ClaimedExecution").filter(pk__in=gone))
    held = settle(connection, outcomes)
    for row in kept:
        row.save(using=connection.alias, force_insert=True)
    return held


@fails("a_failed_job_is_completed_with_its_errors_and_a_failed_row", hook="settle")
def forgets_the_failed_row(connection, outcomes):
    return instead(connection, outcomes, Ending.FAILED, Ending.FINISHED)


@fails("a_failed_job_is_completed_with_its_errors_and_a_failed_row", hook="settle")
def deletes_failed_jobs_too(connection, outcomes):
    settled = replaced(outcomes, Ending.FAILED, ending=Ending.FINISHED)
    return settle(connection, settled)


@fails("a_failed_job_is_completed_with_its_errors_and_a_failed_row", hook="settle")
def fails_without_completing_the_job(connection, outcomes):
    held = settle(connection, outcomes)
    failed = [o.job_id for o in outcomes if o.ending is Ending.FAILED]
    rows(connection, "Job").filter(pk__in=failed).update(finished_at=None)
    return held


@fails("a_failed_row_has_the_fingerprint_of_its_outcome_or_none", hook="settle")
def gives_all_failures_one_fingerprint(connection, outcomes):
    return settle(connection, [o._replace(fingerprint="f" * 16) for o in outcomes])


@fails("a_failed_row_that_is_there_already_is_replaced", hook="settle")
def keeps_the_failed_row_that_is_there(connection, outcomes):
    before = list(rows(connection, "FailedExecution"))
    held = settle(connection, outcomes)
    for row in before:
        row.save(using=connection.alias, force_update=True)
    return held


@fails("a_job_retried_without_delay_is_ready", hook="settle")
def completes_retried_jobs(connection, outcomes):
    return instead(connection, outcomes, Ending.RETRIED, Ending.FAILED)


@fails("a_job_retried_without_delay_is_ready", "a_released_job_keeps_what_earlier_attempts_left",
       hook="settle")  # fmt: skip
def forgets_the_errors_of_a_retry(connection, outcomes):
    return instead(connection, outcomes, Ending.RETRIED, Ending.RELEASED)


@fails("a_job_retried_without_delay_is_ready", hook="settle")
def schedules_retries_that_need_not_wait(connection, outcomes):
    return settle(connection, [o._replace(delay=o.delay or 0.001) for o in outcomes])


@fails("a_job_retried_with_a_delay_is_scheduled_by_the_databases_clock", hook="settle")
def retries_at_once(connection, outcomes):
    return settle(connection, replaced(outcomes, Ending.RETRIED, delay=0.0))


@fails("a_job_retried_with_a_delay_is_scheduled_by_the_databases_clock", hook="settle")
def waits_whole_seconds(connection, outcomes):
    return settle(connection, [o._replace(delay=float(round(o.delay + 0.6))) for o in outcomes])


@fails("a_job_retried_with_a_delay_is_scheduled_by_the_databases_clock", hook="settle")
def counts_the_delay_by_another_clock(connection, outcomes):
    return settle(connection, [o._replace(delay=o.delay and o.delay + 3600) for o in outcomes])


@fails("a_released_job_is_ready_as_before", "a_released_job_keeps_what_earlier_attempts_left",
       hook="settle")  # fmt: skip
def counts_a_release_as_an_attempt(connection, outcomes):
    return instead(connection, outcomes, Ending.RELEASED, Ending.RETRIED)


@fails("a_released_job_is_ready_as_before", "a_job_retried_without_delay_is_ready", hook="settle")
def forgets_the_rank(connection, outcomes):
    return settle(connection, [outcome._replace(rank=0) for outcome in outcomes])


@fails("a_released_job_is_ready_as_before", "the_token_grows_with_each_claim_of_a_job",
       hook="settle")  # fmt: skip
def drops_the_token(connection, outcomes):
    held = settle(connection, outcomes)
    rows(connection, "ReadyExecution").update(token=0)
    rows(connection, "ScheduledExecution").update(token=0)
    return held


@fails("a_batch_ends_each_job_in_its_own_way", hook="settle")
def ends_a_batch_in_one_way(connection, outcomes):
    ending = outcomes[0].ending if outcomes else None
    return settle(connection, [outcome._replace(ending=ending) for outcome in outcomes])


@fails("a_large_batch_is_settled", hook="settle")
def settles_a_hundred_at_most(connection, outcomes):
    return settle(connection, outcomes[:100])


@fails("nothing_to_settle_changes_nothing", hook="settle")
def settles_everything_when_told_nothing(connection, outcomes):
    if not outcomes:
        rows(connection, "ClaimedExecution").update(token=F("token") + 1)
    return settle(connection, outcomes)


@fails("all_outcomes_are_one_transaction", hook="settle")
def settles_one_by_one(connection, outcomes):
    return {job_id for outcome in outcomes for job_id in settle(connection, [outcome])}


@fails("all_outcomes_are_one_transaction", hook="settle")
def leaves_out_what_cannot_be_stored(connection, outcomes):
    try:
        return settle(connection, outcomes)
    except DatabaseError:
        return settle(connection, outcomes[:-1])


@fails("settle_joins_the_callers_transaction", hook="settle")
def commits_at_once(connection, outcomes):
    held = settle(connection, outcomes)
    commit(connection)
    return held


@fails("a_token_that_is_not_the_claims_changes_nothing",
       "an_outcome_of_an_earlier_claim_changes_nothing",
       "of_two_outcomes_of_a_job_the_one_with_the_token_counts", hook="settle")  # fmt: skip
def ignores_the_fence(connection, outcomes):
    return settle(connection, as_held(connection, {o.job_id: o for o in outcomes}.values()))


@fails("a_token_that_is_not_the_claims_changes_nothing", hook="settle")
def accepts_newer_tokens(connection, outcomes):
    return settle(
        connection,
        [held if held.token < o.token else o
         for o, held in zip(outcomes, as_held(connection, outcomes), strict=True)],
    )  # fmt: skip


@fails("an_outcome_of_a_job_that_has_ended_changes_nothing",
       "an_outcome_of_an_earlier_claim_changes_nothing", hook="settle")  # fmt: skip
def writes_results_past_the_fence(connection, outcomes):
    held = settle(connection, outcomes)
    for outcome in outcomes:
        if outcome.ending is Ending.FINISHED and outcome.preserve:
            job = rows(connection, "Job").filter(pk=outcome.job_id)
            job.update(return_value=outcome.return_value)
    return held


@fails("an_outcome_of_a_job_that_has_ended_changes_nothing", hook="settle")
def deletes_jobs_past_the_fence(connection, outcomes):
    held = settle(connection, outcomes)
    gone = [o.job_id for o in outcomes if o.ending is Ending.FINISHED and not o.preserve]
    rows(connection, "Job").filter(pk__in=gone, finished_at__isnull=False).delete()
    return held


@fails("an_outcome_of_a_job_that_nobody_claimed_changes_nothing", hook="settle")
def says_that_every_claim_was_held(connection, outcomes):
    settle(connection, outcomes)
    return {outcome.job_id for outcome in outcomes}


@fails("a_batch_tells_which_claims_were_held", hook="settle")
def drops_the_batch_for_one_stale_outcome(connection, outcomes):
    if as_held(connection, outcomes) != list(outcomes):
        return set()
    return settle(connection, outcomes)


@fails("a_batch_tells_which_claims_were_held", hook="settle")
def says_that_the_batch_was_held(connection, outcomes):
    held = settle(connection, outcomes)
    return {outcome.job_id for outcome in outcomes} if held else held


@fails("of_two_outcomes_of_a_job_the_one_with_the_token_counts", hook="settle")
def keeps_the_last_outcome_of_a_job(connection, outcomes):
    return settle(connection, list({o.job_id: o for o in outcomes}.values()))


@fails("of_many_threads_that_settle_a_claim_one_holds_it", hook="settle")
def looks_at_the_fence_before_it_has_the_lock(connection, outcomes):
    tokens = dict(rows(connection, "ClaimedExecution").values_list("pk", "token"))
    held = [o for o in outcomes if tokens.get(o.job_id) == o.token]
    sleep(0.05)
    with sqlite.steady_queue_transaction(connection):
        present = portable.current_time(connection, portable.now(connection))
        rows(connection, "ClaimedExecution").filter(pk__in=[o.job_id for o in held]).delete()
        for outcome in held:
            end_claim(connection, outcome, present)
    return {outcome.job_id for outcome in held}


@fails("every_instant_that_a_statement_writes_equals_itself", hook="settle")
def stores_the_end_in_milliseconds_of_text(connection, outcomes):
    held = settle(connection, outcomes)
    shorten(connection, "steady_queue_jobs", "finished_at")
    return held
