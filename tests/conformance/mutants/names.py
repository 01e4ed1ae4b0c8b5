"""Different keys taken for the same. Queue names: see ``claim_order``."""

from __future__ import annotations

import unicodedata

from .mutant import add, fails, sqlite

take, give = sqlite.steady_queue_take_permit, sqlite.steady_queue_give_permit


def bare(name):
    """Return a name without accents."""
    return "".join(c for c in unicodedata.normalize("NFD", name) if not unicodedata.combining(c))


add(
    "takes_keys_in_any_case_for_one",
    {
        "take_permit": lambda connection, key, limit, duration: take(
            connection, key.casefold(), limit, duration
        ),
        "give_permit": lambda connection, key, limit: give(connection, key.casefold(), limit),
    },
    "semaphore_keys_are_distinct",
)
add(
    "trims_blanks_off_keys",
    {
        "take_permit": lambda connection, key, limit, duration: take(
            connection, key.rstrip(), limit, duration
        ),
    },
    "semaphore_keys_are_distinct",
)


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
