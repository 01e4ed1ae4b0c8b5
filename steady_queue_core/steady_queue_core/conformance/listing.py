"""Listing the queues that have ready jobs."""

from __future__ import annotations

from datetime import timedelta

from .base import ConformanceCase, new_job

#: Names that one comparison or another takes for each other, or sorts in another order.
NAMES = (
    "A", "B", "a", "a ", "a  b", "a%", "a%b", "a*", "a_", "a_b", "a\\", "a\\_b", "aXb", "aa", "ab",
    "aé", "ae\u0301", "b", "á", "a\u0301", "ß", "ss", "Ω", "\ud7ff", "\ue000", "\uffff",
    "\U00010000", "😀", "😀a", "😁", "\U0010ffff", "\U0010ffff\U0010ffff",
)  # fmt: skip


class ListingCases(ConformanceCase):
    def listed(self, prefix: str = "") -> list[str]:
        return self.dialect.list_queues(self.connection, prefix)

    def test_queues_are_listed_once_and_sorted(self) -> None:
        self.enqueue(*[new_job(name) for name in ("b", "a", "c", "b", "a", "b")])
        self.assertEqual(self.listed(), ["a", "b", "c"])

    def test_no_jobs_no_queues(self) -> None:
        self.assertEqual(self.listed(), [])
        self.assertEqual(self.listed("a"), [])

    def test_only_queues_with_ready_jobs_are_listed(self) -> None:
        self.enqueue(new_job("taken"), new_job("later", delay=timedelta(hours=1)))
        self.claim()
        self.enqueue(new_job("ready"))
        self.pause("ready")
        self.assertEqual(self.listed(), ["ready"])

    def test_names_sort_by_code_point(self) -> None:
        """Not by the rules of a language, and not by UTF-16, where emoji sort before U+FFFF."""
        self.enqueue(*[new_job(name) for name in NAMES])
        self.assertEqual(self.listed(), sorted(NAMES))

    def test_a_prefix_lists_exactly_the_names_that_start_with_it(self) -> None:
        """Not as a pattern, nor ignoring case or accents."""
        self.enqueue(*[new_job(name) for name in NAMES])
        for prefix in ("", "zz", *NAMES, "a\\%", "\U0010fffe"):
            expected = sorted(name for name in NAMES if name.startswith(prefix))
            self.assertEqual(self.listed(prefix), expected, f"prefix {prefix!r}")

    def test_many_rows_and_queues_are_listed(self) -> None:
        names = [f"queue_{number:03}" for number in range(150)]
        self.enqueue(*[new_job(name) for name in names for _ in range(4)])
        self.assertEqual(self.listed(), names)
        self.assertEqual(self.listed("queue_14"), names[140:])

    def test_what_a_transaction_has_enqueued_it_lists(self) -> None:
        with self.dialect.transaction(self.connection):
            self.enqueue(new_job("new"))
            self.assertEqual(self.listed(), ["new"])
            self.assertEqual(self.elsewhere(self.listed), [])

    def counted(self, queue_name: str, limit: int = 100) -> int:
        return self.dialect.count_ready(self.connection, queue_name, limit)

    def test_ready_jobs_are_counted_up_to_a_limit(self) -> None:
        self.enqueue(*[new_job("mail", rank=number % 3) for number in range(7)], new_job("other"))
        self.assertEqual([self.counted("mail", limit) for limit in (1, 6, 7, 8)], [1, 6, 7, 7])
        self.assertEqual(self.counted("none"), 0)

    def test_only_ready_jobs_are_counted(self) -> None:
        later = new_job("mail", delay=timedelta(hours=1))
        self.enqueue(new_job("mail"), new_job("mail"), later)
        self.claim(limit=1)
        self.pause("mail")
        self.assertEqual(self.counted("mail"), 1)

    def test_jobs_are_counted_by_the_exact_name_of_their_queue(self) -> None:
        self.enqueue(*[new_job(name) for name in NAMES])
        for name in NAMES:
            self.assertEqual(self.counted(name), 1, f"queue {name!r}")

    def test_what_a_transaction_has_enqueued_it_counts(self) -> None:
        with self.dialect.transaction(self.connection):
            self.enqueue(new_job("new"))
            self.assertEqual(self.counted("new"), 1)
            self.assertEqual(self.elsewhere(lambda: self.counted("new")), 0)
