"""What errors of the database mean."""

from __future__ import annotations

from contextlib import suppress

from django.db import DatabaseError, IntegrityError

from .contention import ContentionCase


class ErrorCases(ContentionCase):
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
