"""Rows that the database refuses, by a trigger, with an error that tells nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections

STATEMENTS = {
    "sqlite": """
        CREATE TRIGGER refuse BEFORE {event} FOR EACH ROW WHEN {condition}
        BEGIN SELECT RAISE(ABORT, 'not this one'); END
    """,
    "postgresql": """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF {condition} THEN RAISE EXCEPTION 'not this one'; END IF;
            RETURN COALESCE(NEW, OLD);
        END $$;
        CREATE TRIGGER refuse BEFORE {event} FOR EACH ROW EXECUTE FUNCTION refuse()
    """,
    "mysql": """
        CREATE TRIGGER refuse BEFORE {event} FOR EACH ROW
        IF {condition} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not this one'; END IF
    """,
}


@contextmanager
def refusing(using: str, event: str, condition: str) -> Iterator[None]:
    """Let the database refuse an ``event``, such as ``UPDATE ON steady_queue_jobs``, for the rows
    that fit."""
    vendor = connections[using].vendor
    _execute(using, STATEMENTS[vendor].format(event=event, condition=condition))
    try:
        yield
    finally:
        on = event.partition(" ON ")[2]
        is_postgres = vendor == "postgresql"
        _execute(using, f"DROP TRIGGER refuse ON {on}" if is_postgres else "DROP TRIGGER refuse")
        if is_postgres:
            _execute(using, "DROP FUNCTION refuse()")


def _execute(using: str, statement: str) -> None:
    with connections[using].cursor() as cursor:
        cursor.execute(statement)
