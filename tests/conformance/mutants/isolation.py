"""Things kept that belong to a thread, a connection or a database."""

from __future__ import annotations

import os

from .mutant import fails, sqlite

kept: dict[str, object] = {}


@fails("every_operation_uses_the_connection_it_is_given",
       "threads_work_side_by_side_and_one_after_the_other", hook="list_queues")  # fmt: skip
def keeps_the_first_connection(connection, prefix):
    return sqlite.steady_queue_list_queues(kept.setdefault("connection", connection), prefix)


@fails("every_operation_uses_the_connection_it_is_given", hook="enqueue")
def knows_one_database_only(connection, jobs):
    from django.db import connections

    return sqlite.steady_queue_enqueue(connections["default"], jobs)


@fails("a_connection_may_be_closed_between_any_two_operations", hook="settle")
def keeps_a_cursor(connection, outcomes):
    cursor = vars(connection).setdefault("kept_cursor", connection.cursor())
    cursor.execute("SELECT 1")
    return sqlite.steady_queue_settle(connection, outcomes)


@fails("a_connection_may_be_closed_between_any_two_operations", hook="claim")
def needs_an_open_connection(connection, process, selector, limit):
    assert connection.connection is not None
    return sqlite.steady_queue_claim(connection, process, selector, limit)


@fails("a_thread_that_has_ended_leaves_nothing_open", hook="claim")
def leaves_a_file_open(connection, process, selector, limit):
    kept.setdefault("files", []).append(os.open(os.devnull, os.O_RDONLY))
    return sqlite.steady_queue_claim(connection, process, selector, limit)
