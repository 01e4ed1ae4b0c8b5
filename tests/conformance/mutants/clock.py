"""Clocks that are not the database's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db.models import DateTimeField, TextField, Value
from django.db.models.functions import Cast, Now

from .mutant import fails

FIVE_HOURS = timedelta(hours=5)


@fails("the_clock_is_the_databases_in_utc", hook="now")
def is_the_local_time_of_a_host(connection):
    return Value(datetime.now(UTC) + FIVE_HOURS, output_field=DateTimeField())


@fails("the_clock_moves_on_within_a_transaction", hook="now")
def stands_still_within_a_transaction(connection):
    if not connection.in_atomic_block:
        connection.begun = None
        return Now()
    connection.begun = getattr(connection, "begun", None) or datetime.now(UTC)
    return Value(connection.begun, output_field=DateTimeField())


@fails("the_clock_compares_with_what_is_stored", hook="now")
def is_written_in_another_form(connection):
    return Cast(Value("9999"), TextField())


@fails("an_instant_of_the_clock_equals_itself_when_it_is_read_and_compared", hook="now")
def is_written_with_fewer_digits(connection):
    return Now()


@fails("the_clock_is_the_databases_in_utc", hook="now")
def is_a_minute_fast(connection):
    return Now() + timedelta(minutes=1)


@fails("the_clock_can_be_stored", hook="now")
def is_a_value_of_this_process(connection):
    return datetime.now(UTC)
