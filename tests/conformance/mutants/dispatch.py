"""Scheduled jobs moved wrongly."""

from __future__ import annotations

from datetime import timedelta
from time import sleep

from steady_queue_core.dialects import Dispatched, portable
from steady_queue_core.dialects.portable.models import moved

from .mutant import commit, fails, rows, sqlite

dispatch = sqlite.steady_queue_dispatch


def move(connection, picked, token=None):
    """Move scheduled rows to ready, whatever they are."""
    present = portable.current_time(connection, portable.now(connection))
    count = 0
    with sqlite.steady_queue_transaction(connection):
        for row in picked:
            rows(connection, "ScheduledExecution").filter(pk=row.pk).delete()
            token = row.token if token is None else token
            ready = moved("ReadyExecution", row, token, present)
            # The core tells apart what a database refuses: this one refuses nothing.
            rows(connection, "ReadyExecution").bulk_create([ready], ignore_conflicts=True)
            count += 1
    return Dispatched(count, sqlite.steady_queue_dispatch(connection, 0).next_due_in)


def due(connection, early=0.0):
    """Return the rows that are due, or soon are."""
    until = portable.current_time(connection, portable.now(connection)) + timedelta(seconds=early)
    return rows(connection, "ScheduledExecution").filter(due_at__lte=until)


@fails("due_jobs_become_ready_and_others_stay", "a_job_that_is_not_due_never_moves",
       hook="dispatch")  # fmt: skip
def moves_jobs_that_are_not_due(connection, limit):
    return move(connection, rows(connection, "ScheduledExecution")[:limit])


@fails("due_jobs_become_ready_and_others_stay", hook="dispatch")
def moves_a_minute_late(connection, limit):
    return move(connection, due(connection, early=-60).order_by("due_at", "rank", "pk")[:limit])


@fails("a_job_becomes_ready_when_its_time_has_come", hook="dispatch")
def moves_a_moment_early(connection, limit):
    return move(connection, due(connection, early=0.29).order_by("due_at", "rank", "pk")[:limit])


@fails("the_earliest_due_comes_first", "no_more_jobs_move_than_the_limit", hook="dispatch")
def moves_the_latest_first(connection, limit):
    return move(connection, due(connection).order_by("-due_at", "rank", "pk")[:limit])


@fails("a_job_of_later_whose_token_is_of_no_claim_has_not_run", hook="dispatch")
def takes_every_token_for_that_of_a_claim(connection, limit):
    scheduled = rows(connection, "ScheduledExecution")
    scheduled.filter(token__gt=0, token__lt=portable.FIRST_TOKEN).update(token=portable.FIRST_TOKEN)
    return dispatch(connection, limit)


@fails("the_earliest_due_comes_first", hook="dispatch")
def moves_by_age(connection, limit):
    return move(connection, due(connection).order_by("pk")[:limit])


@fails("the_earliest_due_comes_first", hook="dispatch")
def ignores_the_rank(connection, limit):
    return move(connection, due(connection).order_by("due_at", "pk")[:limit])


@fails("no_more_jobs_move_than_the_limit", hook="dispatch")
def ignores_the_limit(connection, limit):
    return dispatch(connection, 1000)


@fails("no_more_jobs_move_than_the_limit", hook="dispatch")
def leaves_the_scheduled_row(connection, limit):
    kept = list(due(connection)[:limit])
    moved = dispatch(connection, limit)
    for row in kept:
        row.save(using=connection.alias, force_insert=True)
    return moved


@fails("a_moved_job_keeps_queue_rank_and_token", "the_token_grows_with_each_claim_of_a_job",
       hook="dispatch")  # fmt: skip
def drops_the_token(connection, limit):
    return move(connection, due(connection).order_by("due_at", "rank", "pk")[:limit], token=0)


@fails("dispatch_says_when_the_next_job_is_due", hook="dispatch")
def never_says_when_the_next_is_due(connection, limit):
    return Dispatched(dispatch(connection, limit).moved, None)


@fails("dispatch_says_when_the_next_job_is_due", hook="dispatch")
def says_how_long_ago_it_was_due(connection, limit):
    moved, wait = dispatch(connection, limit)
    return Dispatched(moved, -60.0 if wait == 0 else wait)


@fails("dispatch_says_when_the_next_job_is_due", hook="dispatch")
def says_when_the_last_is_due(connection, limit):
    moved, wait = dispatch(connection, limit)
    return Dispatched(moved, wait and wait + 3600)


@fails("after_the_last_job_has_moved_none_is_due", hook="dispatch")
def says_now_when_there_is_none(connection, limit):
    moved, wait = dispatch(connection, limit)
    return Dispatched(moved, wait or 0.0)


@fails("a_dispatch_that_is_rolled_back_moves_nothing", hook="dispatch")
def commits_at_once(connection, limit):
    moved = dispatch(connection, limit)
    commit(connection)
    return moved


@fails("of_many_dispatchers_exactly_one_moves_each_job", hook="dispatch")
def looks_before_it_has_the_lock(connection, limit):
    seen = list(due(connection).order_by("due_at", "rank", "pk")[:limit])
    sleep(0.02)
    return move(connection, seen)


@fails("of_many_dispatchers_exactly_one_moves_each_job", hook="dispatch")
def counts_what_others_moved(connection, limit):
    before = rows(connection, "ScheduledExecution").count()
    sleep(0.01)
    _, wait = dispatch(connection, limit)
    return Dispatched(before - rows(connection, "ScheduledExecution").count(), wait)
