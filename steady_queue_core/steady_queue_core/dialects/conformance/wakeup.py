"""The bell that rings when jobs may have become ready."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from time import monotonic

from ..records import Wakeup
from .base import ConformanceCase, new_job


class WakeupCases(ConformanceCase):
    def with_bell(self, work: Callable[[Wakeup], None]) -> None:
        """Do ``work`` with a bell, in a thread as a process that waits for jobs has it."""

        def listen() -> None:
            bell = self.dialect.wakeup(self.connection)
            self.assertIsNotNone(bell, "DialectInfo.has_wakeup is true, but there is no bell")
            assert bell is not None
            try:
                work(bell)
            finally:
                bell.close()

        if not self.dialect.info.has_wakeup:
            self.skipTest("DialectInfo.has_wakeup is false")
        self.elsewhere(listen)

    def rings(self, bell: Wakeup, seconds: float) -> bool:
        return bool(select.select([bell.fileno()], [], [], seconds)[0])

    def silence(self, bell: Wakeup) -> None:
        """Clear until nothing more comes."""
        deadline = monotonic() + self.patience
        bell.clear()
        while self.rings(bell, 0.05):
            self.assertLess(monotonic(), deadline, "the bell rings on without end")
            bell.clear()

    def enqueue_and_ring(self) -> None:
        self.enqueue(new_job("mail"))
        self.dialect.ring(self.connection, ["mail"])

    def test_there_is_a_bell_where_the_dialect_says_so(self) -> None:
        bell = self.elsewhere(lambda: self.dialect.wakeup(self.connection))
        self.assertEqual(bell is not None, self.dialect.info.has_wakeup)
        if bell is not None:
            bell.close()

    def test_the_bell_rings_after_anothers_commit_each_time(self) -> None:
        def work(bell: Wakeup) -> None:
            for _ in range(3):
                self.silence(bell)
                self.assertTrue(bell.in_order)
                self.elsewhere(self.enqueue_and_ring)
                self.assertTrue(self.rings(bell, self.patience), "nothing has rung")

        self.with_bell(work)

    def test_the_bell_rings_for_another_process_that_came_later(self) -> None:
        """Also when every other connection was closed meanwhile."""

        def work(bell: Wakeup) -> None:
            self.silence(bell)
            self.connection.close()
            self.elsewhere(self.enqueue_and_ring)
            self.assertTrue(self.rings(bell, self.patience), "nothing has rung")

        self.connection.close()
        self.with_bell(work)

    def test_clearing_silences_the_bell_and_never_blocks(self) -> None:
        def work(bell: Wakeup) -> None:
            self.elsewhere(self.enqueue_and_ring)
            self.silence(bell)
            begun = monotonic()
            for _ in range(20):
                bell.clear()
            self.assertLess(monotonic() - begun, self.patience / 2)
            self.assertFalse(self.rings(bell, 0))

        self.with_bell(work)

    def test_a_closed_bell_has_given_up_its_descriptor(self) -> None:
        if not self.dialect.info.has_wakeup:
            self.skipTest("DialectInfo.has_wakeup is false")

        def listen() -> None:
            bell = self.dialect.wakeup(self.connection)
            assert bell is not None
            descriptor = bell.fileno()
            os.fstat(descriptor)
            bell.close()
            self.connection.close()
            with self.assertRaises(OSError):
                os.fstat(descriptor)

        self.elsewhere(listen)

    def test_ringing_is_harmless_whether_anybody_listens(self) -> None:
        ids = self.enqueue_many(1)
        self.dialect.ring(self.connection, ["mail", "é%'\\"])
        self.dialect.ring(self.connection, [])
        self.assertEqual(self.ids("Ready"), ids)
