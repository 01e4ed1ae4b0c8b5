"""Selecting a dialect for a database, and setting up its connections."""

from __future__ import annotations

from typing import Any

from ..dialects.records import API_VERSION
from ..dialects.registry import registry
from .base import ConformanceCase


class ForeignDatabase:
    """A connection that no dialect drives. Any access to more than its vendor is an error."""

    vendor = "no-such-vendor"
    alias = "foreign"

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"asked a foreign database for {name!r}")


class SelectionCases(ConformanceCase):
    def test_info_names_the_dialect_and_the_product(self) -> None:
        info = self.dialect.info
        self.assertIn(info.name, registry().names())
        self.assertEqual(info.api_version, API_VERSION)
        self.assertTrue(info.display_name.strip())
        self.assertIsInstance(info.skips_locked, bool)
        self.assertIsInstance(info.has_wakeup, bool)

    def test_a_foreign_vendor_is_declined_unasked(self) -> None:
        """Only the vendor's name is checked."""
        foreign: Any = ForeignDatabase()
        self.assertIsNone(self.dialect.describe(foreign))

    def test_selection_runs_no_query(self) -> None:
        """The database may be unavailable when the dialect is picked."""

        def refuse(execute: Any, sql: Any, *context: Any) -> None:
            raise AssertionError(f"selection ran: {sql}")

        with self.connection.execute_wrapper(refuse):
            self.assertEqual(self.dialect.describe(self.connection), self.dialect.info)

    def test_prepare_says_what_it_changed(self) -> None:
        sentences = self.elsewhere(lambda: self.dialect.prepare(self.connection))
        self.assertIsInstance(sentences, list)
        for sentence in sentences:
            self.assertIsInstance(sentence, str)
            self.assertTrue(sentence.strip())

    def test_a_connection_may_be_prepared_and_shared_again(self) -> None:
        """Both hooks may be called again for the same connection, without harm."""

        def work() -> list[int]:
            job_ids = []
            for impatient in (False, True, True):
                self.dialect.prepare(self.connection, impatient=impatient)
                self.dialect.share(self.connection)
                job_ids += self.enqueue_many(1)
            return job_ids

        self.assertEqual(self.elsewhere(work), self.ids("Ready"))
