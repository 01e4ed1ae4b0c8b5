"""Rows inserted or updated that should not be."""

from __future__ import annotations

from time import sleep

from django.db import IntegrityError

from .mutant import commit, fails, sqlite

insert_if_absent, upsert = sqlite.steady_queue_insert_if_absent, sqlite.steady_queue_upsert


def same(connection, row, unique_fields):
    """Return the rows with the unique fields of ``row``."""
    wanted = {field: getattr(row, field) for field in unique_fields}
    return type(row).objects.using(connection.alias).filter(**wanted)


@fails("an_absent_row_is_inserted_and_a_present_one_left_as_it_is", hook="insert_if_absent")
def overwrites_a_present_row(connection, row, unique_fields):
    if insert_if_absent(connection, row, unique_fields):
        return True
    same(connection, row, unique_fields).update(job_id=row.job_id)
    return False


@fails("an_absent_row_is_inserted_and_a_present_one_left_as_it_is",
       "of_many_threads_that_insert_a_row_exactly_one_does",
       "a_row_that_another_transaction_takes_back_is_absent", hook="insert_if_absent")  # fmt: skip
def says_always_that_it_inserted(connection, row, unique_fields):
    insert_if_absent(connection, row, unique_fields)
    return True


@fails("the_transaction_stays_usable_whether_inserted_or_not", hook="insert_if_absent")
def breaks_the_transaction_of_the_loser(connection, row, unique_fields):
    inserted = insert_if_absent(connection, row, unique_fields)
    if not inserted and connection.in_atomic_block:
        connection.set_rollback(True)
    return inserted


@fails("of_many_threads_that_insert_a_row_exactly_one_does",
       hook="insert_if_absent")  # fmt: skip
def looks_and_then_inserts(connection, row, unique_fields):
    if same(connection, row, unique_fields).exists():
        return False
    sleep(0.05)
    row.save(using=connection.alias, force_insert=True)
    return True


@fails("a_row_newer_than_the_callers_snapshot_is_present",
       "an_absent_row_is_inserted_and_a_present_one_left_as_it_is",
       hook="insert_if_absent")  # fmt: skip
def needs_a_transaction_around_it(connection, row, unique_fields):
    assert connection.in_atomic_block
    return insert_if_absent(connection, row, unique_fields)


@fails("other_integrity_errors_are_raised", hook="insert_if_absent")
def ignores_every_integrity_error(connection, row, unique_fields):
    try:
        return insert_if_absent(connection, row, unique_fields)
    except IntegrityError:
        return False


@fails("upsert_inserts_new_rows_and_updates_those_there", hook="upsert")
def leaves_present_rows_as_they_are(connection, rows, unique_fields, update_fields):
    for row in rows:
        insert_if_absent(connection, row, unique_fields)


@fails("upsert_inserts_new_rows_and_updates_those_there", hook="upsert")
def updates_without_inserting(connection, rows, unique_fields, update_fields):
    for row in rows:
        values = {field: getattr(row, field) for field in update_fields}
        same(connection, row, unique_fields).update(**values)


@fails("upsert_updates_only_the_fields_named", hook="upsert")
def updates_every_field(connection, rows, unique_fields, update_fields):
    names = [f.name for f in type(rows[0])._meta.fields] if rows else []
    upsert(connection, rows, unique_fields,
           [name for name in names if name not in ("id", "key", *unique_fields)])  # fmt: skip


@fails("upsert_updates_only_the_fields_named", hook="upsert")
def replaces_rows(connection, rows, unique_fields, update_fields):
    for row in rows:
        same(connection, row, unique_fields).delete()
    upsert(connection, rows, unique_fields, update_fields)


@fails("upsert_of_nothing_does_nothing", hook="upsert")
def needs_a_row(connection, rows, unique_fields, update_fields):
    assert rows[0] is not None
    upsert(connection, rows, unique_fields, update_fields)


@fails("upsert_takes_many_rows", hook="upsert")
def upserts_a_hundred_at_most(connection, rows, unique_fields, update_fields):
    upsert(connection, rows[:100], unique_fields, update_fields)


@fails("upsert_joins_the_callers_transaction", hook="upsert")
def commits_at_once(connection, rows, unique_fields, update_fields):
    upsert(connection, rows, unique_fields, update_fields)
    commit(connection)


@fails("many_threads_upsert_the_same_row", hook="upsert")
def looks_and_then_upserts(connection, rows, unique_fields, update_fields):
    there = [same(connection, row, unique_fields).exists() for row in rows]
    sleep(0.05)
    for row, present in zip(rows, there, strict=True):
        if not present:
            row.save(using=connection.alias, force_insert=True)
