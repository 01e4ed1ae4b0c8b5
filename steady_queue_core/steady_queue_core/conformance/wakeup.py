"""The listener that wakes a process when jobs may be ready."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from time import monotonic

from ..dialects.records import Wakeup
from .base import ConformanceCase, new_job


class WakeupCases(ConformanceCase):
    def with_listener(self, work: Callable[[Wakeup], None]) -> None:
        """Run ``work`` with a listener, in a thread like that of a waiting process."""

        def listen() -> None:
            listener = self.dialect.wakeup(self.connection)
            self.assertIsNotNone(
                listener, "DialectInfo.has_wakeup is true, but there is no listener"
            )
            assert listener is not None
            try:
                work(listener)
            finally:
                listener.close()

        if not self.dialect.info.has_wakeup:
            self.skipTest("DialectInfo.has_wakeup is false")
        self.elsewhere(listen)

    def wakes(self, listener: Wakeup, seconds: float) -> bool:
        return bool(select.select([listener.fileno()], [], [], seconds)[0])

    def drain(self, listener: Wakeup) -> None:
        """Clear until no more wake-ups arrive."""
        deadline = monotonic() + self.patience
        listener.clear()
        while self.wakes(listener, 0.05):
            self.assertLess(monotonic(), deadline, "wake-ups never end")
            listener.clear()

    def enqueue_and_notify(self) -> None:
        self.enqueue(new_job("mail"))
        self.dialect.ring(self.connection, ["mail"])

    def test_there_is_a_listener_where_the_dialect_says_so(self) -> None:
        listener = self.elsewhere(lambda: self.dialect.wakeup(self.connection))
        self.assertEqual(listener is not None, self.dialect.info.has_wakeup)
        if listener is not None:
            listener.close()

    def test_a_listener_is_woken_after_anothers_commit_each_time(self) -> None:
        def work(listener: Wakeup) -> None:
            for _ in range(3):
                self.drain(listener)
                self.assertTrue(listener.in_order)
                self.elsewhere(self.enqueue_and_notify)
                self.assertTrue(self.wakes(listener, self.patience), "no wake-up arrived")

        self.with_listener(work)

    def test_a_listener_that_hears_commits_is_woken_when_a_job_ends(self) -> None:
        if not self.dialect.info.hears_commits:
            self.skipTest("DialectInfo.hears_commits is false")

        def work(listener: Wakeup) -> None:
            claim = self.elsewhere(self.claimed_job)
            self.drain(listener)
            self.elsewhere(lambda: self.settle(self.finished(claim)))
            self.assertTrue(self.wakes(listener, self.patience), "no wake-up arrived")

        self.with_listener(work)

    def test_a_listener_is_woken_for_another_process_that_came_later(self) -> None:
        """Also after every other connection was closed."""

        def work(listener: Wakeup) -> None:
            self.drain(listener)
            self.connection.close()
            self.elsewhere(self.enqueue_and_notify)
            self.assertTrue(self.wakes(listener, self.patience), "no wake-up arrived")

        self.connection.close()
        self.with_listener(work)

    def test_clearing_silences_a_listener_and_never_blocks(self) -> None:
        def work(listener: Wakeup) -> None:
            self.elsewhere(self.enqueue_and_notify)
            self.drain(listener)
            begun = monotonic()
            for _ in range(20):
                listener.clear()
            self.assertLess(monotonic() - begun, self.patience / 2)
            self.assertFalse(self.wakes(listener, 0))

        self.with_listener(work)

    def test_a_closed_listener_has_given_up_its_descriptor(self) -> None:
        if not self.dialect.info.has_wakeup:
            self.skipTest("DialectInfo.has_wakeup is false")

        def listen() -> None:
            listener = self.dialect.wakeup(self.connection)
            assert listener is not None
            descriptor = listener.fileno()
            os.fstat(descriptor)
            listener.close()
            self.connection.close()
            with self.assertRaises(OSError):
                os.fstat(descriptor)

        self.elsewhere(listen)

    def test_ringing_is_harmless_whether_anybody_listens(self) -> None:
        ids = self.enqueue_many(1)
        self.dialect.ring(self.connection, ["mail", "é%'\\"])
        self.dialect.ring(self.connection, [])
        self.assertEqual(self.ids("Ready"), ids)
