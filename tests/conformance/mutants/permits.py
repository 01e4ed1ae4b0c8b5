"""Permits that are too many or too few, or go to the wrong job."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from time import sleep

from django.db import transaction

from steady_queue_core.dialects import Ending, Limit
from steady_queue_core.dialects.portable.models import model

from .mutant import add, commit, fails, rows, sqlite
from .settle import as_held, replaced

admit, dispatch = sqlite.steady_queue_admit, sqlite.steady_queue_dispatch
enqueue, settle = sqlite.steady_queue_enqueue, sqlite.steady_queue_settle


def limited(jobs, **changes):
    """Return ``jobs``, those with a limit with another one."""
    return [job if job.limit is None else replace(job, limit=replace(job.limit, **changes))
            for job in jobs]  # fmt: skip


def permits(connection, outcomes):
    return rows(connection, "Permit").filter(pk__in=[outcome.job_id for outcome in outcomes])


@fails("a_job_with_a_limit_takes_a_permit", "a_job_that_finds_no_permit_is_blocked",
       "of_one_enqueue_as_many_are_ready_as_there_are_permits",
       "a_job_that_is_not_to_wait_is_not_stored", hook="enqueue")  # fmt: skip
def knows_no_limits(connection, jobs):
    return enqueue(connection, [replace(job, limit=None) for job in jobs])


@fails("a_job_without_a_limit_takes_none", hook="enqueue")
def limits_every_job(connection, jobs):
    limit = Limit(key="all", to=9, duration=timedelta(hours=1))
    return enqueue(connection, [replace(job, limit=job.limit or limit) for job in jobs])


@fails("of_one_enqueue_as_many_are_ready_as_there_are_permits",
       "of_many_threads_as_many_are_let_in_as_there_are_permits",
       "no_more_run_at_once_than_the_limits_allow", hook="enqueue")  # fmt: skip
def gives_one_too_many(connection, jobs):
    return [
        new
        for job in jobs
        for new in enqueue(connection, limited([job], to=job.limit.to + 1 if job.limit else 1))
    ]


@fails("a_job_that_finds_no_permit_is_blocked", hook="enqueue")
def forgets_the_queue_of_who_is_blocked(connection, jobs):
    stored = enqueue(connection, jobs)
    rows(connection, "BlockedExecution").update(queue_name="", rank=0)
    return stored


@fails("of_one_enqueue_as_many_are_ready_as_there_are_permits", hook="enqueue")
def lets_in_who_is_named_first(connection, jobs):
    return [new for job in jobs for new in enqueue(connection, [job])]


@fails("a_job_that_is_not_to_wait_is_not_stored",
       "a_job_of_later_that_is_not_to_wait_is_deleted_when_it_is_due", hook="enqueue")  # fmt: skip
def lets_everybody_wait(connection, jobs):
    return enqueue(connection, limited(jobs, discards=False))


@fails("a_larger_limit_lets_more_in", "a_changed_limit_counts_for_permits_that_are_left",
       hook="enqueue")  # fmt: skip
def keeps_to_the_first_limit(connection, jobs):
    known = dict(rows(connection, "Semaphore").values_list("key", "limit"))
    return [new for job in jobs for new in enqueue(
        connection,
        limited([job], to=known.get(job.limit.key, job.limit.to)) if job.limit else [job],
    )]  # fmt: skip


@fails("a_smaller_limit_counts_the_permits_that_are_out", hook="enqueue")
def forgets_permits_when_the_limit_shrinks(connection, jobs):
    for job in jobs:
        if job.limit is not None:
            larger = rows(connection, "Semaphore").filter(pk=job.limit.key, limit__gt=job.limit.to)
            if larger.exists():
                rows(connection, "Permit").filter(key=job.limit.key).delete()
    return enqueue(connection, jobs)


@fails("a_rollback_gives_the_permit_back", hook="enqueue")
def commits_at_once(connection, jobs):
    stored = enqueue(connection, jobs)
    commit(connection)
    return stored


@fails("permits_that_are_out_count_however_many_there_are", hook="settle")
def forgets_permits_beyond_the_limit(connection, outcomes):
    rows(connection, "Semaphore").filter(value__lt=0).update(value=0)
    return settle(connection, outcomes)


@fails("of_many_threads_as_many_are_let_in_as_there_are_permits", hook="enqueue")
def looks_and_then_takes(connection, jobs):
    held = rows(connection, "Permit").count()
    sleep(0.01)
    if all(job.limit is not None and held < job.limit.to for job in jobs):
        jobs = limited(jobs, to=99)
    return enqueue(connection, jobs)


@fails("who_comes_before_the_end_is_committed_is_not_left_waiting", hook="enqueue")
def blocks_for_what_it_saw_before(connection, jobs):
    full = rows(connection, "Semaphore").filter(value=0).exists()
    with transaction.atomic(using=connection.alias):
        stored = enqueue(connection, jobs)
        if full:
            for row in rows(connection, "ReadyExecution").filter(pk=stored[-1].job_id):
                rows(connection, "BlockedExecution").create(
                    job_id=row.pk, queue_name=row.queue_name, rank=row.rank, token=row.token,
                    created_at=row.created_at, concurrency_key="key",
                )  # fmt: skip
                row.delete()
    return stored


@fails("a_job_of_later_takes_its_permit_when_it_is_due",
       "a_job_of_later_that_is_not_to_wait_is_deleted_when_it_is_due",
       "a_job_that_is_tried_again_takes_a_permit_anew", hook="dispatch")  # fmt: skip
def makes_all_that_are_due_ready(connection, limit):
    rows(connection, "ScheduledExecution").update(concurrency_key=None)
    return dispatch(connection, limit)


@fails("a_permit_ends_with_its_claim", hook="settle")
def keeps_the_permit_of_a_claim_that_has_ended(connection, outcomes):
    return settle(connection, [outcome._replace(concurrency_key=None) for outcome in outcomes])


@fails("a_permit_ends_with_its_claim", hook="settle")
def lets_nobody_in(connection, outcomes):
    with transaction.atomic(using=connection.alias):
        permits(connection, outcomes).delete()
        return settle(connection, [outcome._replace(concurrency_key=None) for outcome in outcomes])


@fails("a_permit_ends_with_its_claim", hook="settle")
def lets_in_who_has_come_last(connection, outcomes):
    waiting = rows(connection, "BlockedExecution")
    ranks = dict(waiting.values_list("pk", "rank"))
    for job_id in ranks:
        waiting.filter(pk=job_id).update(rank=-job_id)
    held = settle(connection, outcomes)
    for name in ("BlockedExecution", "ReadyExecution"):
        for job_id, rank in ranks.items():
            rows(connection, name).filter(pk=job_id).update(rank=rank)
    return held


@fails("the_next_one_is_claimed_with_the_same_call", hook="settle_and_claim")
def claims_before_it_settles(connection, outcomes, process, selector, limit):
    claims = sqlite.steady_queue_claim(connection, process, selector, limit)
    return settle(connection, outcomes), claims


@fails("a_claim_that_was_lost_ends_no_permit", hook="settle")
def ends_the_permits_of_others(connection, outcomes):
    permits(connection, outcomes).delete()
    held = settle(connection, outcomes)
    admit(connection, sorted({outcome.concurrency_key for outcome in outcomes}))
    return held


@fails("a_claim_that_was_lost_ends_no_permit", hook="settle")
def ends_the_claims_of_others(connection, outcomes):
    return settle(connection, as_held(connection, outcomes))


@fails("a_job_given_back_keeps_its_permit", hook="settle")
def takes_the_permit_of_who_is_given_back(connection, outcomes):
    released = [outcome for outcome in outcomes if outcome.ending is Ending.RELEASED]
    permits(connection, released).delete()
    return settle(connection, outcomes)


@fails("a_job_given_back_without_a_permit_waits_for_one", hook="settle")
def makes_who_is_given_back_ready(connection, outcomes):
    return settle(connection, replaced(outcomes, Ending.RELEASED, concurrency_key=None))


@fails("a_job_that_is_tried_again_takes_a_permit_anew", hook="settle")
def lets_who_is_tried_again_keep_its_permit(connection, outcomes):
    at_once = [o.ending is Ending.RETRIED and not o.delay for o in outcomes]
    return settle(
        connection,
        [
            outcome._replace(ending=Ending.RELEASED) if again else outcome
            for outcome, again in zip(outcomes, at_once, strict=True)
        ],
    )


@fails("who_comes_while_the_holder_ends_is_not_left_waiting", hook="settle")
def lets_in_whom_it_saw_before(connection, outcomes):
    waiting = rows(connection, "BlockedExecution").exists()
    held = settle(connection, outcomes)
    if held and not waiting:
        for row in rows(connection, "ReadyExecution").filter(job__permit__isnull=False):
            row.delete()
    return held


@fails("admit_lets_in_whom_there_are_permits_for", hook="admit")
def never_lets_in_anybody(connection, keys):
    return 0


@fails("admit_lets_in_whom_there_are_permits_for", hook="admit")
def believes_the_semaphore(connection, keys):
    for semaphore in rows(connection, "Semaphore").filter(pk__in=keys):
        holders = rows(connection, "Permit").filter(key=semaphore.key)
        for number in range(semaphore.limit - semaphore.value - holders.count()):
            model("Permit").objects.using(connection.alias).create(
                job_id=-1 - number, key=semaphore.key
            )
    admitted = admit(connection, keys)
    rows(connection, "Permit").filter(pk__lt=0).delete()
    return admitted


def only_known(connection, keys):
    """Return those of ``keys`` that have a semaphore."""
    return [key for key in keys if rows(connection, "Semaphore").filter(pk=key).exists()]


def settles_only_known(connection, outcomes):
    known = only_known(connection, {outcome.concurrency_key for outcome in outcomes})
    permits(connection, outcomes).delete()
    return settle(connection, [
        outcome if outcome.concurrency_key in known else outcome._replace(concurrency_key=None)
        for outcome in outcomes
    ])  # fmt: skip


add(
    "knows_nobody_without_a_semaphore",
    {
        "settle": settles_only_known,
        "admit": lambda connection, keys: admit(connection, only_known(connection, keys)),
    },
    "a_semaphore_that_is_missing_has_the_limit_of_who_waits",
)
