"""Wrong answers about databases, wrong set-up, wrong checks."""

from __future__ import annotations

from django.core.checks import Error, Warning

from ..plugins import selecting
from .mutant import add, claiming, fails, rows, sqlite

add("has_no_name_to_show", {"dialect": claiming(display_name=" ")},
    "info_names_the_dialect_and_the_product")  # fmt: skip
add("was_written_for_another_contract", {"dialect": selecting("sqlite", api_version=4)},
    "info_names_the_dialect_and_the_product")  # fmt: skip
add("says_that_it_skips_locked_rows", {"dialect": claiming(skips_locked=True)},
    "rows_locked_by_another_transaction_are_passed_over",
    "a_second_worker_gets_jobs_while_a_first_holds_its_own",
     "of_many_jobs_beside_a_paused_queue_each_goes_to_one_worker",
     "jobs_that_another_dispatcher_holds_are_passed_over",
     "upsert_locks_its_rows_in_the_order_given",
     "nobody_waits_for_who_has_locked_the_semaphore")  # fmt: skip
add("says_that_it_has_no_listener", {"dialect": claiming(has_wakeup=False)},
    "there_is_a_listener_where_the_dialect_says_so")  # fmt: skip


@fails("a_foreign_vendor_is_declined_unasked", hook="dialect")
def looks_into_every_database(connection):
    connection.features.supports_transactions  # noqa: B018
    return sqlite.steady_queue_dialect(connection)


@fails("a_foreign_vendor_is_declined_unasked", hook="dialect")
def answers_for_every_database(connection):
    return claiming()(type("SQLite", (), {"vendor": "sqlite"}))


@fails("selection_runs_no_query", hook="dialect")
def asks_the_server_its_version(connection):
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("SELECT sqlite_version()")
    return sqlite.steady_queue_dialect(connection)


@fails("prepare_says_what_it_changed", hook="prepare")
def says_nothing_readable(connection):
    return ["", sqlite.steady_queue_prepare(connection)]


@fails("a_connection_may_be_prepared_and_shared_again", hook="share")
def shares_a_connection_once(connection):
    assert "shared" not in vars(connection)
    connection.shared = True


@fails("checks_are_messages_with_an_id_and_something_to_do", hook="checks")
def warns_without_an_id(connection):
    return [Warning("something is wrong")]


@fails("the_server_of_the_tests_is_fit_for_a_queue", hook="checks")
def finds_fault_with_every_server(connection):
    return [Error("no server is good enough", id="steady_queue.E199")]


@fails("checks_change_nothing", hook="checks")
def checks_by_deleting(connection):
    rows(connection, "ReadyExecution").delete()
    return []
