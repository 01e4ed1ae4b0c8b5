"""Locks and errors misunderstood."""

from __future__ import annotations

from django.db import DatabaseError, IntegrityError

from .mutant import fails


@fails("locked_rows_keep_filter_order_and_limit", hook="lock_rows")
def locks_all_rows(connection, rows, wait):
    return rows.model.objects.using(connection.alias).all()


@fails("locked_rows_keep_filter_order_and_limit", hook="lock_rows")
def reorders_locked_rows(connection, rows, wait):
    return sorted(rows, key=lambda row: row.pk)


@fails("a_writer_waits_for_locked_rows", hook="lock_rows")
def passes_over_rows_it_should_wait_for(connection, rows, wait):
    return rows.none() if wait else rows


@fails("a_real_deadlock_or_lock_time_out_is_contention", hook="is_contention")
def recognises_no_contention(connection, error):
    return False


@fails("ordinary_errors_are_neither_contention_nor_a_lost_connection", hook="is_contention")
def tries_again_whatever_the_error(connection, error):
    return isinstance(error, DatabaseError)


@fails("ordinary_errors_are_neither_contention_nor_a_lost_connection", hook="is_contention")
def tries_duplicates_again(connection, error):
    return isinstance(error, IntegrityError)


@fails("a_connection_closed_underneath_is_a_lost_connection", hook="is_lost_connection")
def loses_no_connection(connection, error):
    return False


@fails("ordinary_errors_are_neither_contention_nor_a_lost_connection",
       "a_real_deadlock_or_lock_time_out_is_contention", hook="is_lost_connection")  # fmt: skip
def reconnects_whatever_the_error(connection, error):
    return True
