"""Jobs that come in another order than that of their turns, and turns that are not fair."""

from __future__ import annotations

from django.db.models import F

from steady_queue_core.dialects.portable.turns import lock_turns, save_turns

from .mutant import commit, fails, rows, sqlite
from .taking import take

take_turn, enqueue, dispatch, settle = (
    sqlite.steady_queue_take_turn, sqlite.steady_queue_enqueue, sqlite.steady_queue_dispatch,
    sqlite.steady_queue_settle,
)  # fmt: skip


def lose_turns(connection):
    rows(connection, "ReadyExecution").update(turn=0.0)


@fails("among_equal_ranks_the_smaller_turn_comes_first",
       "turns_are_compared_over_all_queues", hook="claim")  # fmt: skip
def takes_the_older_job_first(connection, process, selector, limit):
    served = [name for name in ("q_a", "a", "b", "c") if not selector.excludes(name)]
    found = rows(connection, "ReadyExecution").filter(queue_name__in=served)
    return take(connection, process, found.order_by("rank", "pk")[:limit])


@fails("jobs_that_become_ready_have_their_ids_for_turns", hook="enqueue")
def enqueues_without_turns(connection, jobs):
    stored = enqueue(connection, jobs)
    lose_turns(connection)
    return stored


@fails("jobs_that_become_ready_have_their_ids_for_turns", hook="dispatch")
def dispatches_without_turns(connection, limit):
    dispatched = dispatch(connection, limit)
    lose_turns(connection)
    return dispatched


@fails("jobs_that_become_ready_have_their_ids_for_turns", hook="settle")
def settles_without_turns(connection, outcomes):
    held = settle(connection, outcomes)
    lose_turns(connection)
    return held


@fails("in_an_idle_queue_a_job_takes_the_turn_of_its_id",
       "a_key_that_is_ahead_stays_there", hook="take_turn")  # fmt: skip
def leaves_the_turn_as_it_is(connection, arrival):
    turn = float(arrival.job_id)
    take_turn(connection, arrival)
    rows(connection, "ReadyExecution").filter(pk=arrival.job_id).update(turn=turn)


@fails("a_key_moves_on_by_the_inverse_of_its_weight", hook="take_turn")
def ignores_weights(connection, arrival):
    rows(connection, "Share").delete()
    take_turn(connection, arrival)


@fails("a_key_without_a_weight_has_the_default_one", hook="take_turn")
def ignores_the_default_weight(connection, arrival):
    take_turn(connection, arrival._replace(default_weight=1.0))


@fails("a_key_moves_on_by_the_inverse_of_its_weight", hook="take_turn")
def does_not_move_the_key_on(connection, arrival):
    known = list(rows(connection, "Turn").values_list("pk", "turn"))
    take_turn(connection, arrival)
    for pk, turn in known:
        rows(connection, "Turn").filter(pk=pk).update(turn=turn)


@fails("a_key_that_has_waited_moves_up_to_the_first_turn", hook="take_turn")
def lets_keys_save_turns_up(connection, arrival):
    known = rows(connection, "Turn").filter(key=arrival.key, queue_name=arrival.queue_name)
    waited = known.filter(turn__lt=arrival.job_id).values_list("turn", flat=True).first()
    take_turn(connection, arrival)
    if waited is not None:
        rows(connection, "ReadyExecution").filter(pk=arrival.job_id).update(turn=waited)


@fails("a_key_that_is_ahead_stays_there", hook="take_turn")
def forgets_how_far_a_key_is(connection, arrival):
    rows(connection, "Turn").delete()
    take_turn(connection, arrival)


@fails("keys_queues_and_ranks_have_turns_of_their_own", hook="take_turn")
def has_one_turn_for_all_ranks(connection, arrival):
    take_turn(connection, arrival._replace(rank=1))


@fails("keys_queues_and_ranks_have_turns_of_their_own", "the_longest_names_have_turns",
       hook="take_turn")  # fmt: skip
def ignores_the_case_and_the_end_of_keys(connection, arrival):
    take_turn(connection, arrival._replace(key=arrival.key.upper()[:200]))


@fails("keys_queues_and_ranks_have_turns_of_their_own", hook="take_turn")
def looks_at_all_queues(connection, arrival):
    rows(connection, "ReadyExecution").exclude(pk=arrival.job_id).update(
        queue_name=arrival.queue_name, rank=arrival.rank
    )
    take_turn(connection, arrival)


@fails("what_no_queue_has_stored_counts_for_nothing", hook="take_turn")
def believes_any_number(connection, arrival):
    known = rows(connection, "Turn").filter(key=arrival.key, turn__gt=2.0**53).first()
    take_turn(connection, arrival)
    if known is not None:
        rows(connection, "Turn").filter(pk=known.pk).update(turn=F("turn") + known.turn)


@fails("many_at_once_take_one_turn_after_the_other", hook="take_turn")
def gives_each_job_the_first_turn(connection, arrival):
    take_turn(connection, arrival)
    first = rows(connection, "ReadyExecution").order_by("turn").values_list("turn", flat=True)[0]
    rows(connection, "ReadyExecution").filter(pk=arrival.job_id).update(turn=first)


@fails("a_turn_ends_with_its_transaction", hook="take_turn")
def commits_the_turn(connection, arrival):
    take_turn(connection, arrival)
    commit(connection)


@fails("keys_are_locked_and_created_in_their_order", hook="lock_turns")
def takes_all_keys_for_new(connection, keys):
    found = lock_turns(connection, keys)
    return {key: row._replace(turn=0.0) for key, row in found.items()}


@fails("keys_are_locked_and_created_in_their_order",
       "a_key_that_somebody_has_locked_is_waited_for", hook="save_turns")  # fmt: skip
def saves_the_turns_of_other_ranks(connection, rows):
    save_turns(connection, {(level._replace(rank=2), key): rows[level, key] for level, key in rows})
