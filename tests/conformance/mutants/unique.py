"""Unique keys that two jobs have, or none."""

from __future__ import annotations

import time

from . import mutant
from .mutant import commit, fails, sqlite

settle, upsert = sqlite.steady_queue_settle, sqlite.steady_queue_upsert


def is_key(rows):
    return bool(rows) and type(rows[0]).__name__ == "UniqueKey"


@fails("a_key_makes_one_job", "a_bulk_has_its_jobs_in_their_order", hook="upsert")
def remembers_no_key(connection, rows, unique_fields, update_fields):
    upsert(connection, rows, unique_fields, update_fields)
    if is_key(rows):
        type(rows[0]).objects.using(connection.alias).update(job_id=None)


@fails("keys_that_look_alike_are_two", hook="upsert")
def folds_the_case_of_keys(connection, rows, unique_fields, update_fields):
    for row in rows if is_key(rows) else ():
        row.key = row.key.lower()
    upsert(connection, rows, unique_fields, update_fields)


@fails("a_key_and_its_job_are_one_transaction",
       "a_key_that_another_transaction_takes_back_is_free", hook="upsert")  # fmt: skip
def commits_the_keys(connection, rows, unique_fields, update_fields):
    upsert(connection, rows, unique_fields, update_fields)
    if is_key(rows) and rows[0].job_id is not None:
        commit(connection)


@fails("a_call_that_is_refused_stores_nothing", hook="upsert")
def gives_keys_to_a_job_before_anybody_takes_them(connection, rows, unique_fields, update_fields):
    for row in rows if is_key(rows) else ():
        row.job_id = row.job_id or 1
    upsert(connection, rows, unique_fields, update_fields)


@fails("of_many_threads_that_enqueue_a_key_one_makes_the_job", hook="transaction")
def has_no_transactions(connection):
    return connection.execute_wrapper(giving_way)


def giving_way(execute, *statement):
    """Let others come between this statement and the next."""
    result = execute(*statement)
    time.sleep(0.002)
    return result


@fails("the_end_of_a_job_frees_its_key", "a_key_is_kept_after_a_success",
       "the_key_of_a_limited_job_is_freed", hook="settle")  # fmt: skip
def says_that_nothing_was_held(connection, outcomes):
    settle(connection, outcomes)
    return set()


@fails("a_lost_claim_frees_no_key", hook="settle")
def says_that_all_was_held(connection, outcomes):
    settle(connection, outcomes)
    return {outcome.job_id for outcome in outcomes}


@fails("the_end_of_a_job_and_of_its_key_are_one_transaction", hook="settle")
def commits_the_end(connection, outcomes):
    held = settle(connection, outcomes)
    commit(connection)
    return held


@fails("a_key_until_the_start_is_freed_by_it", hook="lock_rows")
def finds_every_key_locked(connection, rows, wait):
    if rows.model.__name__ == "UniqueKey":
        return rows.none()
    return sqlite.steady_queue_lock_rows(connection, rows, wait)


@fails("a_job_that_waits_is_replaced", hook="lock_rows")
def finds_every_job_claimed(connection, rows, wait):
    if rows.model.__name__ == "ReadyExecution":
        return rows.none()
    return sqlite.steady_queue_lock_rows(connection, rows, wait)


@fails("what_an_outcome_entails_is_unique", "a_bulk_has_its_jobs_in_their_order", hook="enqueue")
def stores_jobs_twice(connection, jobs):
    sqlite.steady_queue_enqueue(connection, jobs)
    return sqlite.steady_queue_enqueue(connection, jobs)


@fails("a_claimed_job_is_not_replaced", hook="claim")
def leaves_what_it_claims_ready(connection, process, selector, limit):
    before = list(mutant.rows(connection, "ReadyExecution"))
    claims = sqlite.steady_queue_claim(connection, process, selector, limit)
    mutant.rows(connection, "ReadyExecution").bulk_create(before)
    return claims
