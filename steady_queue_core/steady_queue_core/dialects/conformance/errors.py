"""What errors of the database mean."""

from __future__ import annotations

from contextlib import suppress
from threading import Event

from django.db import DatabaseError, IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from .base import ConformanceCase


class ErrorCases(ConformanceCase):
    def shorten_lock_wait(self, connection: BaseDatabaseWrapper) -> None:
        """Let ``connection`` wait for locks a short time only, so that a case takes less.

        May be overridden. Without it the case of real contention takes as long as the database
        needs to see a deadlock, or to give up waiting.
        """

    def provoke_contention(self) -> BaseException:
        """Make two transactions deadlock; return the error of the loser."""
        pair = self.enqueue_many(2)
        holds, ended = (Event(), Event()), (Event(), Event())

        def fight(me: int) -> BaseException | None:
            other = 1 - me
            rows = self.rows("ReadyExecution")
            self.shorten_lock_wait(self.connection)
            try:
                with atomic(using=self.using):
                    mine = rows.filter(pk=pair[me])
                    list(self.dialect.lock_rows(self.connection, mine, wait=True))
                    holds[me].set()
                    if holds[other].wait(1.0):
                        rows.filter(pk=pair[other]).update(rank=me)
                    else:
                        # The first lock was the whole database: the other waits until it fails.
                        ended[other].wait(self.patience)
            except DatabaseError as error:
                return error
            finally:
                ended[me].set()
            return None

        errors = self.in_threads([lambda: fight(0), lambda: fight(1)])
        [lost] = [error for error in errors if error is not None]
        return lost

    def ordinary_errors(self) -> list[BaseException]:
        """Return errors of a healthy database."""
        errors: list[BaseException] = [ValueError("no error of a database at all")]
        process_id = self.register()
        try:
            self.rows("Process").create(
                pk=process_id, name="again", pid=1, created_at=self.stored(self.present()),
                last_heartbeat_at=self.stored(self.present()),
            )  # fmt: skip
        except IntegrityError as error:
            errors.append(error)
        try:
            with self.connection.cursor() as cursor:
                cursor.execute("SELECT no_such_column FROM steady_queue_no_such_table")
        except DatabaseError as error:
            errors.append(error)
        self.assertEqual(len(errors), 3)
        return errors

    def test_a_real_deadlock_or_lock_time_out_is_contention(self) -> None:
        error = self.provoke_contention()
        self.assertTrue(self.dialect.is_contention(self.connection, error), repr(error))
        self.assertFalse(self.dialect.is_lost_connection(self.connection, error), repr(error))

    def test_ordinary_errors_are_neither_contention_nor_a_lost_connection(self) -> None:
        for error in self.ordinary_errors():
            self.assertIs(self.dialect.is_contention(self.connection, error), False, repr(error))
            lost = self.dialect.is_lost_connection(self.connection, error)
            self.assertIs(lost, False, repr(error))

    def test_a_connection_closed_underneath_is_a_lost_connection(self) -> None:
        """The next connection that Django opens works."""

        def lose_it() -> int:
            self.connection.ensure_connection()
            self.connection.connection.close()
            with self.assertRaises(DatabaseError) as raised, self.connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            error = raised.exception
            self.assertTrue(self.dialect.is_lost_connection(self.connection, error), repr(error))
            self.assertFalse(self.dialect.is_contention(self.connection, error), repr(error))
            with suppress(DatabaseError):  # Some drivers refuse to close what is closed.
                self.connection.close()
            self.connection.connection = None
            return len(self.enqueue_many(1))

        self.assertEqual(self.elsewhere(lose_it), 1)
