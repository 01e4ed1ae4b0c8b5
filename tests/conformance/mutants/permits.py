"""Permits that are too many, or too few."""

from __future__ import annotations

from datetime import timedelta
from time import sleep

from django.db.models import F

from .mutant import add, commit, fails, rows, sqlite

take, give = sqlite.steady_queue_take_permit, sqlite.steady_queue_give_permit


def semaphore(connection, key):
    return rows(connection, "Semaphore").filter(pk=key)


@fails("a_semaphore_that_does_not_exist_has_all_its_permits", hook="take_permit")
def gives_the_first_for_nothing(connection, key, limit, duration):
    return take(connection, key, limit, duration) and (
        semaphore(connection, key).exclude(value__lt=limit - 1).update(value=limit) >= 0
    )


@fails("no_more_permits_are_taken_than_there_are", hook="take_permit")
def always_gives_a_permit(connection, key, limit, duration):
    take(connection, key, limit, duration)
    return True


@fails("no_more_permits_are_taken_than_there_are", hook="take_permit")
def gives_one_too_many(connection, key, limit, duration):
    return take(connection, key, limit + 1, duration)


@fails("no_more_permits_are_taken_than_there_are", hook="take_permit")
def keeps_one_back(connection, key, limit, duration):
    return limit > 1 and take(connection, key, limit - 1, duration)


@fails("a_limit_of_none_gives_no_permit", hook="take_permit")
def takes_a_limit_of_none_for_one(connection, key, limit, duration):
    return take(connection, key, limit or 1, duration)


@fails("a_permit_given_back_can_be_taken_again", "permits_never_exceed_the_limit",
       hook="give_permit")  # fmt: skip
def keeps_what_is_given_back(connection, key, limit):
    return True


@fails("permits_never_exceed_the_limit", hook="give_permit")
def gives_back_without_bounds(connection, key, limit):
    return bool(semaphore(connection, key).update(value=F("value") + 1))


@fails("a_permit_of_an_unknown_semaphore_is_not_given", hook="give_permit")
def makes_a_semaphore_to_give_back_to(connection, key, limit):
    if not semaphore(connection, key).exists():
        take(connection, key, limit, timedelta(hours=1))
    return give(connection, key, limit)


add(
    "has_one_semaphore_for_all_keys",
    {
        "take_permit": lambda connection, key, limit, duration: take(
            connection, "one", limit, duration
        ),
        "give_permit": lambda connection, key, limit: give(connection, "one", limit),
    },
    "semaphores_do_not_touch_each_other",
)


@fails("semaphores_do_not_touch_each_other", hook="give_permit")
def gives_back_to_every_semaphore(connection, key, limit):
    return bool(rows(connection, "Semaphore").filter(value__lt=limit).update(value=F("value") + 1))


@fails("a_permit_taken_renews_the_expiry", hook="take_permit")
def does_not_renew_the_expiry(connection, key, limit, duration):
    before = semaphore(connection, key).first()
    taken = take(connection, key, limit, duration)
    if before is not None:
        semaphore(connection, key).update(expires_at=before.expires_at)
    return taken


@fails("a_permit_taken_renews_the_expiry", hook="take_permit")
def renews_the_expiry_when_it_refuses(connection, key, limit, duration):
    if take(connection, key, limit, duration):
        return True
    semaphore(connection, key).update(expires_at=F("expires_at") + timedelta(hours=1))
    return False


@fails("a_permit_taken_renews_the_expiry", "every_instant_is_taken_from_that_clock",
       hook="take_permit")  # fmt: skip
def counts_the_expiry_by_another_clock(connection, key, limit, duration):
    return take(connection, key, limit, duration + timedelta(hours=2))


@fails("a_smaller_limit_counts_the_permits_that_are_out", hook="take_permit")
def forgets_permits_when_the_limit_shrinks(connection, key, limit, duration):
    semaphore(connection, key).filter(limit__gt=limit).update(value=limit, limit=limit)
    return take(connection, key, limit, duration)


@fails("a_smaller_limit_counts_the_permits_that_are_out", hook="give_permit")
def keeps_permits_when_the_limit_shrinks(connection, key, limit):
    return bool(semaphore(connection, key).filter(value__lt=limit).update(value=F("value") + 1))


@fails("a_larger_limit_has_as_many_more_permits", hook="take_permit")
def keeps_to_the_first_limit(connection, key, limit, duration):
    row = semaphore(connection, key).first()
    return take(connection, key, row.limit if row else limit, duration)


@fails("a_permit_taken_in_a_transaction_goes_back_with_it", hook="take_permit")
def commits_at_once(connection, key, limit, duration):
    taken = take(connection, key, limit, duration)
    commit(connection)
    return taken


@fails("of_many_threads_as_many_get_a_permit_as_there_are",
       "many_threads_take_and_give_without_overrun", hook="take_permit")  # fmt: skip
def looks_and_then_takes(connection, key, limit, duration):
    row = semaphore(connection, key).first()
    sleep(0.01)
    if row is None:
        return take(connection, key, limit, duration) or True
    return row.value > 0 and bool(semaphore(connection, key).update(value=row.value - 1))
