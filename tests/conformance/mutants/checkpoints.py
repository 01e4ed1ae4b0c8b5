"""Checkpoints and progress that are lost, kept too long, or stored for others."""

from __future__ import annotations

import struct

from steady_queue_core.dialects import CheckpointChange, Ending
from steady_queue_core.progress import Progress

from .mutant import commit, fails, rows, sqlite

save, settle = sqlite.steady_queue_save_checkpoint, sqlite.steady_queue_settle
claim, upsert = sqlite.steady_queue_claim, sqlite.steady_queue_upsert
lock_rows = sqlite.steady_queue_lock_rows


@fails("a_checkpoint_is_stored_while_the_claim_is_held", hook="save_checkpoint")
def says_that_it_has_stored(connection, change):
    return True


@fails("a_checkpoint_is_stored_while_the_claim_is_held", hook="save_checkpoint")
def stores_by_a_clock_of_its_own(connection, change):
    held = save(connection, change)
    rows(connection, "Checkpoint").update(updated_at="2001-01-01 00:00:00.000000")
    return held


@fails("a_checkpoint_is_stored_while_the_claim_is_held", hook="save_checkpoint")
def stores_for_everybody(connection, change):
    held = save(connection, change)
    rows(connection, "Checkpoint").update(data=change.data)
    return held


@fails("what_a_change_does_not_name_stays", hook="save_checkpoint")
def replaces_the_whole_row(connection, change):
    rows(connection, "Checkpoint").filter(pk=change.job_id).delete()
    return save(connection, change)


@fails("what_a_change_does_not_name_stays", hook="save_checkpoint")
def keeps_the_text_of_another_progress(connection, change):
    before = rows(connection, "Checkpoint").filter(pk=change.job_id).first()
    held = save(connection, change)
    if before is not None and before.text:
        rows(connection, "Checkpoint").filter(pk=change.job_id).update(text=before.text)
    return held


@fails("a_later_attempt_replaces_what_an_earlier_one_has_stored", hook="save_checkpoint")
def leaves_what_another_attempt_has_stored(connection, change):
    row = rows(connection, "Checkpoint").filter(pk=change.job_id).first()
    return True if row is not None and row.token != change.token else save(connection, change)


@fails("a_later_attempt_replaces_what_an_earlier_one_has_stored", hook="save_checkpoint")
def keeps_the_time_of_the_first(connection, change):
    before = rows(connection, "Checkpoint").filter(pk=change.job_id).first()
    held = save(connection, change)
    if before is not None:
        rows(connection, "Checkpoint").update(updated_at=before.updated_at)
    return held


@fails("the_largest_values_are_stored_as_they_are", hook="save_checkpoint")
def rounds_numbers(connection, change):
    def rounded(number):
        return number and struct.unpack("f", struct.pack("f", number))[0]

    told = change.progress
    if told is not None:
        told = Progress(rounded(told.done), rounded(told.total), told.text)
    return save(connection, change._replace(progress=told))


@fails("whoever_has_lost_its_claim_stores_nothing", hook="save_checkpoint")
def stores_for_whoever_has_lost_the_claim(connection, change):
    held = rows(connection, "ClaimedExecution").filter(pk=change.job_id).first()
    if held is None:
        return save(connection, change)
    return save(connection, change._replace(token=held.token))


@fails("whoever_has_lost_its_claim_stores_nothing", hook="save_checkpoint")
def stores_for_whoever_has_had_a_claim(connection, change):
    save(connection, change)
    return True


@fails("a_claim_that_ends_meanwhile_is_not_held_any_more", hook="save_checkpoint")
def refuses_in_a_transaction(connection, change):
    return not connection.in_atomic_block and save(connection, change)


@fails("a_claim_does_not_end_before_what_it_stores_is_committed",
       "a_checkpoint_commits_with_the_callers_transaction", hook="save_checkpoint")  # fmt: skip
def commits_what_it_stores(connection, change):
    held = save(connection, change)
    if connection.in_atomic_block:
        commit(connection)
    return held


@fails("threads_that_store_for_one_job_do_not_fail", hook="save_checkpoint")
def stores_once(connection, change: CheckpointChange):
    rows(connection, "Checkpoint").create(
        job_id=change.job_id, token=change.token, data=change.data,
        updated_at="2026-01-01 00:00:00.000000",
    )  # fmt: skip
    return True


@fails("the_first_claim_of_a_job_can_be_told", hook="claim")
def counts_from_two(connection, process, selector, limit):
    found = claim(connection, process, selector, limit)
    return [each._replace(token=each.token + 2**32) for each in found]


@fails("the_first_claim_of_a_job_can_be_told", hook="settle")
def counts_anew_after_a_release(connection, outcomes):
    held = settle(connection, outcomes)
    rows(connection, "ReadyExecution").update(token=0)
    return held


@fails("the_last_progress_is_stored_with_the_outcome", hook="upsert")
def stores_no_last_progress(connection, rows, unique_fields, update_fields):
    if rows[0]._meta.model_name != "checkpoint":
        upsert(connection, rows, unique_fields, update_fields)


@fails("a_checkpoint_ends_with_the_success_of_its_job", hook="settle")
def forgets_who_has_finished(connection, outcomes):
    held = settle(connection, outcomes)
    return held - {each.job_id for each in outcomes if each.ending is Ending.FINISHED}


@fails("of_a_claim_that_is_lost_no_progress_is_stored", hook="settle")
def tells_of_what_it_has_lost(connection, outcomes):
    settle(connection, outcomes)
    return {outcome.job_id for outcome in outcomes}


@fails("the_end_of_a_job_and_its_last_progress_are_one_transaction", hook="upsert")
def commits_the_last_progress(connection, rows, unique_fields, update_fields):
    upsert(connection, rows, unique_fields, update_fields)
    commit(connection)


@fails("what_is_stored_goes_with_a_job_that_is_discarded", hook="lock_rows")
def locks_nothing_that_is_scheduled(connection, rows, wait):
    if rows.model.__name__ == "ScheduledExecution":
        return rows.none()
    return lock_rows(connection, rows, wait)
