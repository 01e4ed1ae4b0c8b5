"""Different keys taken for the same. Queue names: see ``claim_order``."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

from .mutant import fails, sqlite

enqueue = sqlite.steady_queue_enqueue


def bare(name):
    """Return a name without accents."""
    return "".join(c for c in unicodedata.normalize("NFD", name) if not unicodedata.combining(c))


def with_keys(change, jobs):
    """Return ``jobs`` with other concurrency keys."""
    return [replace(job, limit=replace(job.limit, key=change(job.limit.key))) for job in jobs]


@fails("semaphore_keys_are_distinct", hook="enqueue")
def takes_keys_in_any_case_for_one(connection, jobs):
    return enqueue(connection, with_keys(str.casefold, jobs))


@fails("semaphore_keys_are_distinct", hook="enqueue")
def trims_blanks_off_keys(connection, jobs):
    return enqueue(connection, with_keys(str.rstrip, jobs))


@fails("recurring_task_keys_are_distinct", hook="insert_if_absent")
def takes_accents_for_nothing(connection, row, unique_fields):
    row.task_key = bare(row.task_key)
    return sqlite.steady_queue_insert_if_absent(connection, row, unique_fields)


@fails("upserted_keys_are_distinct", hook="upsert")
def upserts_keys_in_any_case(connection, rows, unique_fields, update_fields):
    for row in rows:
        row.key = row.key.lower()
        sqlite.steady_queue_upsert(connection, [row], unique_fields, update_fields)


@fails("the_exact_collation_is_a_name_or_none", hook="exact_collation")
def names_no_collation(connection):
    return ("utf8", "binary")
