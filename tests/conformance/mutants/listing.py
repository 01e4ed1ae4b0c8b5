"""Queues listed wrongly."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from django.db import connections

from .mutant import fails, rows, sqlite

list_queues = sqlite.steady_queue_list_queues


def names(connection):
    return (
        rows(connection, "ReadyExecution")
        .order_by("queue_name")
        .values_list("queue_name", flat=True)
    )


@fails("queues_are_listed_once_and_sorted", "many_rows_and_queues_are_listed", hook="list_queues")
def lists_a_queue_for_each_job(connection, prefix):
    return [name for name in names(connection) if name.startswith(prefix)]


@fails("queues_are_listed_once_and_sorted", "names_sort_by_code_point", hook="list_queues")
def lists_backwards(connection, prefix):
    return list_queues(connection, prefix)[::-1]


@fails("names_sort_by_code_point", hook="list_queues")
def sorts_as_utf16(connection, prefix):
    return sorted(list_queues(connection, prefix), key=lambda name: name.encode("utf-16-be"))


@fails("names_sort_by_code_point", hook="list_queues")
def sorts_as_a_language_does(connection, prefix):
    return sorted(list_queues(connection, prefix), key=str.casefold)


@fails("no_jobs_no_queues", hook="list_queues")
def lists_a_queue_that_is_always_there(connection, prefix):
    return list_queues(connection, prefix) or ["default"]


@fails("only_queues_with_ready_jobs_are_listed", hook="list_queues")
def lists_the_queues_of_all_jobs(connection, prefix):
    found = rows(connection, "Job").values_list("queue_name", flat=True)
    return sorted({name for name in found if name.startswith(prefix)})


@fails("only_queues_with_ready_jobs_are_listed", hook="list_queues")
def leaves_out_paused_queues(connection, prefix):
    paused = set(rows(connection, "Pause").values_list("pk", flat=True))
    return [name for name in list_queues(connection, prefix) if name not in paused]


@fails("a_prefix_lists_exactly_the_names_that_start_with_it", hook="list_queues")
def takes_the_prefix_for_a_pattern(connection, prefix):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT queue_name FROM steady_queue_ready_executions "
            "WHERE queue_name LIKE %s ORDER BY 1",
            [f"{prefix}%"],
        )
        return [name for (name,) in cursor.fetchall()]


@fails("a_prefix_lists_exactly_the_names_that_start_with_it", hook="list_queues")
def compares_in_any_case(connection, prefix):
    wanted = prefix.casefold()
    return [name for name in list_queues(connection, "") if name.casefold().startswith(wanted)]


@fails("a_prefix_lists_exactly_the_names_that_start_with_it", hook="list_queues")
def trims_blanks(connection, prefix):
    return list_queues(connection, prefix.rstrip())


@fails("a_prefix_lists_exactly_the_names_that_start_with_it", hook="list_queues")
def ends_at_the_last_character_of_the_basic_plane(connection, prefix):
    return [name for name in list_queues(connection, prefix) if name <= f"{prefix}\uffff"]


@fails("many_rows_and_queues_are_listed", hook="list_queues")
def lists_a_hundred_at_most(connection, prefix):
    return list_queues(connection, prefix)[:100]


@fails("what_a_transaction_has_enqueued_it_lists", hook="list_queues")
def lists_on_a_connection_of_its_own(connection, prefix):
    def listed():
        try:
            return list_queues(connections[connection.alias], prefix)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(listed).result()


def ready(connection, **conditions):
    return rows(connection, "ReadyExecution").filter(**conditions)


@fails("ready_jobs_are_counted_up_to_a_limit", hook="count_ready")
def counts_all_that_are_ready(connection, queue_name, limit):
    return ready(connection, queue_name=queue_name).count()


@fails("ready_jobs_are_counted_up_to_a_limit", "jobs_are_counted_by_the_exact_name_of_their_queue",
       hook="count_ready")  # fmt: skip
def counts_the_jobs_of_all_queues(connection, queue_name, limit):
    return ready(connection)[:limit].count()


@fails("only_ready_jobs_are_counted", hook="count_ready")
def counts_jobs_in_any_state(connection, queue_name, limit):
    return rows(connection, "Job").filter(queue_name=queue_name)[:limit].count()


@fails("only_ready_jobs_are_counted", hook="count_ready")
def counts_no_jobs_of_paused_queues(connection, queue_name, limit):
    if rows(connection, "Pause").filter(queue_name=queue_name).exists():
        return 0
    return sqlite.steady_queue_count_ready(connection, queue_name, limit)


@fails("jobs_are_counted_by_the_exact_name_of_their_queue", hook="count_ready")
def counts_whatever_starts_with_the_name(connection, queue_name, limit):
    return ready(connection, queue_name__startswith=queue_name)[:limit].count()


@fails("jobs_are_counted_by_the_exact_name_of_their_queue", hook="count_ready")
def counts_regardless_of_case(connection, queue_name, limit):
    return ready(connection, queue_name__iexact=queue_name)[:limit].count()


@fails("what_a_transaction_has_enqueued_it_counts", hook="count_ready")
def counts_outside_of_the_transaction(connection, queue_name, limit):
    def count():
        try:
            other = connections[connection.alias]
            return sqlite.steady_queue_count_ready(other, queue_name, limit)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(count).result()
