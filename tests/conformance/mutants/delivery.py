"""Transactions of tasks that come apart, or see too little."""

from __future__ import annotations

from contextlib import contextmanager

from django.db.transaction import atomic

from .mutant import commit, fails, sqlite


@fails("a_claim_ends_with_the_transaction_of_its_task",
       "a_permit_passes_on_with_the_transaction_of_the_task", hook="settle")  # fmt: skip
def commits_what_the_task_has_written(connection, outcomes):
    held = sqlite.steady_queue_settle(connection, outcomes)
    commit(connection)
    return held


@fails("a_claim_that_ends_while_its_task_runs_is_not_held_any_more", hook="transaction")
@contextmanager
def begins_as_a_reader(connection):
    connection.ensure_connection()
    mode, connection.transaction_mode = connection.transaction_mode, "DEFERRED"
    try:
        with atomic(using=connection.alias):
            yield
    finally:
        connection.transaction_mode = mode
