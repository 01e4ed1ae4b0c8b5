"""Times for which jobs are kept, forgotten or stored for others."""

from __future__ import annotations

from .mutant import commit, fails, sqlite

settle, upsert = sqlite.steady_queue_settle, sqlite.steady_queue_upsert


@fails("how_long_a_job_is_kept_is_stored_with_its_end", hook="upsert")
def stores_nothing(connection, rows, unique_fields, update_fields):
    return None


@fails("how_long_a_job_is_kept_is_stored_with_its_end", hook="upsert")
def stores_the_first_alone(connection, rows, unique_fields, update_fields):
    upsert(connection, rows[:1], unique_fields, update_fields)


@fails("a_time_that_was_left_behind_is_replaced", hook="upsert")
def leaves_what_is_there(connection, rows, unique_fields, update_fields):
    present = type(rows[0]).objects.using(connection.alias).filter(pk__in=[r.pk for r in rows])
    known = set(present.values_list("pk", flat=True))
    upsert(connection, [r for r in rows if r.pk not in known], unique_fields, update_fields)


@fails("of_a_claim_that_is_lost_nothing_is_kept", hook="settle")
def keeps_what_it_has_lost(connection, outcomes):
    settle(connection, outcomes)
    return {outcome.job_id for outcome in outcomes}


@fails("the_end_of_a_job_and_its_time_are_one_transaction", hook="upsert")
def commits_what_it_stores(connection, rows, unique_fields, update_fields):
    upsert(connection, rows, unique_fields, update_fields)
    commit(connection)


@fails("a_failed_job_that_is_retried_is_kept_for_no_time_of_its_own", hook="lock_rows")
def locks_nothing_that_has_failed(connection, rows, wait):
    if rows.model.__name__ == "FailedExecution":
        return rows.none()
    return sqlite.steady_queue_lock_rows(connection, rows, wait)
