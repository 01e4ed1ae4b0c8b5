"""Transactions that are none."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext, suppress
from time import sleep

from django.db.transaction import atomic

from .mutant import commit, fails, sqlite


@fails("a_transaction_commits_at_its_end", "a_transaction_rolls_back_on_an_error_and_raises_it",
       "what_a_transaction_has_enqueued_it_lists", hook="transaction")  # fmt: skip
def commits_each_statement(connection):
    return nullcontext()


@fails("a_transaction_rolls_back_on_an_error_and_raises_it", hook="transaction")
@contextmanager
def swallows_the_error(connection):
    with suppress(Exception), sqlite.steady_queue_transaction(connection):
        yield


@fails("a_transaction_leaves_autocommit_as_it_was", hook="transaction")
@contextmanager
def turns_autocommit_off(connection):
    with sqlite.steady_queue_transaction(connection):
        yield
    connection.set_autocommit(False)


@fails("a_transaction_joins_the_callers", hook="transaction")
@contextmanager
def commits_the_callers_transaction(connection):
    with sqlite.steady_queue_transaction(connection):
        yield
    commit(connection)


@fails("transactions_nest", "a_transaction_joins_the_callers", hook="transaction")
def demands_to_be_outermost(connection):
    return atomic(using=connection.alias, durable=True)


@fails("work_for_after_the_commit_waits_for_it",
       "work_for_after_the_commit_is_dropped_by_a_rollback", hook="transaction")  # fmt: skip
@contextmanager
def begins_behind_djangos_back(connection):
    cursor = connection.cursor()
    cursor.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        cursor.execute("ROLLBACK")
        raise
    cursor.execute("COMMIT")


@fails("reading_and_then_writing_is_safe_in_any_number_of_threads", hook="transaction")
@contextmanager
def becomes_a_writer_halfway(connection):
    connection.ensure_connection()
    connection.transaction_mode = "DEFERRED"
    with atomic(using=connection.alias):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM steady_queue_jobs")
        sleep(0.005)
        yield
