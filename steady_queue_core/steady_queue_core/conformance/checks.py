"""System checks of a dialect."""

from __future__ import annotations

from django.core.checks import CheckMessage

from .base import ConformanceCase


class CheckCases(ConformanceCase):
    def test_checks_are_messages_with_an_id_and_something_to_do(self) -> None:
        for message in self.dialect.checks(self.connection):
            self.assertIsInstance(message, CheckMessage)
            self.assertTrue(message.id, message)
            self.assertTrue(message.msg.strip(), message)

    def test_the_server_of_the_tests_is_fit_for_a_queue(self) -> None:
        serious = [str(found) for found in self.dialect.checks(self.connection)
                   if found.is_serious()]  # fmt: skip
        self.assertEqual(serious, [])

    def test_checks_change_nothing(self) -> None:
        self.enqueue_many(1)
        before = self.everything()
        self.dialect.checks(self.connection)
        self.assertEqual(self.everything(), before)
