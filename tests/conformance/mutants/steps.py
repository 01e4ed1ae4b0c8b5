"""Steps that are lost, mixed up, kept too long, or stored for others."""

from __future__ import annotations

from steady_queue_core.dialects import Ending

from .mutant import commit, fails, rows, sqlite

save, settle, upsert = (
    sqlite.steady_queue_save_step, sqlite.steady_queue_settle, sqlite.steady_queue_upsert,
)  # fmt: skip


@fails("a_step_is_stored_while_the_claim_is_held", hook="save_step")
def says_that_it_has_stored_a_step(connection, step):
    return True


@fails("a_step_is_stored_while_the_claim_is_held", hook="save_step")
def dates_steps_by_a_clock_of_its_own(connection, step):
    held = save(connection, step)
    rows(connection, "Step").update(stored_at="2001-01-01 00:00:00.000000")
    return held


@fails("a_step_is_stored_while_the_claim_is_held", hook="save_step")
def keeps_the_last_step_of_a_job(connection, step):
    rows(connection, "Step").filter(job_id=step.job_id).delete()
    return save(connection, step)


@fails("a_step_is_stored_while_the_claim_is_held", hook="save_step")
def forgets_that_it_is_a_sleep(connection, step):
    return save(connection, step._replace(is_sleep=False))


@fails("names_of_steps_are_compared_exactly", hook="save_step")
def ignores_the_case_of_names(connection, step):
    return save(connection, step._replace(name=step.name.lower()))


@fails("names_of_steps_are_compared_exactly", hook="save_step")
def cuts_blanks_off(connection, step):
    return save(connection, step._replace(name=step.name.rstrip()))


@fails("a_step_that_is_stored_again_replaces_the_former", hook="save_step")
def keeps_the_former_step(connection, step):
    known = rows(connection, "Step").filter(job_id=step.job_id, name=step.name)
    return True if known.exists() else save(connection, step)


@fails("a_step_that_is_stored_again_replaces_the_former", hook="save_step")
def keeps_the_place_of_the_former_step(connection, step):
    former = rows(connection, "Step").filter(job_id=step.job_id, name=step.name).first()
    return save(connection, step if former is None else step._replace(position=former.position))


@fails("the_largest_steps_are_stored_as_they_are", hook="save_step")
def cuts_steps_off(connection, step):
    return save(connection, step._replace(data=step.data[: 2**16]))


@fails("whoever_has_lost_its_claim_stores_no_step", hook="save_step")
def stores_a_step_for_whoever_has_lost_the_claim(connection, step):
    held = rows(connection, "ClaimedExecution").filter(pk=step.job_id).first()
    return save(connection, step if held is None else step._replace(token=held.token))


@fails("whoever_has_lost_its_claim_stores_no_step", hook="save_step")
def stores_a_step_for_whoever_has_had_a_claim(connection, step):
    save(connection, step)
    return True


@fails("of_a_claim_that_ends_meanwhile_no_step_is_stored", hook="save_step")
def refuses_steps_in_a_transaction(connection, step):
    return not connection.in_atomic_block and save(connection, step)


@fails("a_claim_does_not_end_before_its_step_is_committed",
       "a_step_commits_with_the_callers_transaction", hook="save_step")  # fmt: skip
def commits_steps(connection, step):
    held = save(connection, step)
    if connection.in_atomic_block:
        commit(connection)
    return held


@fails("threads_that_take_steps_of_one_job_do_not_fail", hook="save_step")
def takes_a_position_for_a_key(connection, step):
    return save(connection, step._replace(name=f"{step.position % 10}"))


@fails("sleeps_are_stored_with_the_outcome", hook="upsert")
def stores_no_sleeps(connection, rows, unique_fields, update_fields):
    if rows[0]._meta.model_name != "step":
        upsert(connection, rows, unique_fields, update_fields)


@fails("of_a_claim_that_is_lost_no_sleep_is_stored", hook="settle")
def tells_of_sleepers_that_it_has_lost(connection, outcomes):
    settle(connection, outcomes)
    return {outcome.job_id for outcome in outcomes}


@fails("the_end_of_an_attempt_and_its_sleep_are_one_transaction", hook="upsert")
def commits_the_sleep(connection, rows, unique_fields, update_fields):
    upsert(connection, rows, unique_fields, update_fields)
    commit(connection)


@fails("steps_are_kept_as_long_as_their_job", hook="settle")
def tells_of_nobody_that_has_finished(connection, outcomes):
    held = settle(connection, outcomes)
    return held - {each.job_id for each in outcomes if each.ending is Ending.FINISHED}
