"""Semaphores: permits taken and given back."""

from __future__ import annotations

from datetime import timedelta
from threading import Barrier, Lock

from django.db.transaction import atomic

from .base import ConformanceCase
from .transactions import Refused

HOUR = timedelta(hours=1)


class PermitCases(ConformanceCase):
    def take(self, key: str = "key", limit: int = 1, duration: timedelta = HOUR) -> bool:
        return self.dialect.take_permit(self.connection, key, limit, duration)

    def give(self, key: str = "key", limit: int = 1) -> bool:
        return self.dialect.give_permit(self.connection, key, limit)

    def left(self, key: str = "key") -> int:
        """Return how many permits are left, after a look at the bounds."""
        row = self.rows("Semaphore").get(pk=key)
        self.assertGreaterEqual(row.value, 0)
        self.assertLessEqual(row.value, row.limit)
        return int(row.value)

    def test_a_semaphore_that_does_not_exist_has_all_its_permits(self) -> None:
        self.assertIs(self.take(limit=3), True)
        self.assertEqual((self.left(), self.rows("Semaphore").get().limit), (2, 3))

    def test_no_more_permits_are_taken_than_there_are(self) -> None:
        taken = [self.take(limit=3) for _ in range(5)]
        self.assertEqual(taken, [True, True, True, False, False])
        self.assertEqual(self.left(), 0)

    def test_a_limit_of_none_gives_no_permit(self) -> None:
        self.assertIs(self.take(limit=0), False)
        self.take(limit=1)
        self.assertIs(self.take(limit=0), False)
        self.assertEqual(self.left(), 0)

    def test_a_permit_given_back_can_be_taken_again(self) -> None:
        self.take(limit=2)
        self.take(limit=2)
        self.assertIs(self.give(limit=2), True)
        self.assertEqual([self.take(limit=2), self.take(limit=2)], [True, False])

    def test_permits_never_exceed_the_limit(self) -> None:
        self.take(limit=2)
        self.assertEqual([self.give(limit=2) for _ in range(3)], [True, False, False])
        self.assertEqual(self.left(), 2)

    def test_a_permit_of_an_unknown_semaphore_is_not_given(self) -> None:
        self.assertIs(self.give("unknown", 3), False)
        self.assertEqual(self.rows("Semaphore").count(), 0)

    def test_semaphores_do_not_touch_each_other(self) -> None:
        self.take("a", 2)
        self.take("b", 2)
        self.give("a", 2)
        self.assertEqual((self.left("a"), self.left("b")), (2, 1))

    def test_a_permit_taken_renews_the_expiry(self) -> None:
        """By the database's clock; one that is refused renews nothing."""
        self.take(limit=2, duration=timedelta(seconds=5))
        before = self.present()
        self.take(limit=2, duration=HOUR)
        expires_at = self.aware(self.rows("Semaphore").get().expires_at)
        self.assert_between(before, expires_at - HOUR, self.present())
        self.assertFalse(self.take(limit=2, duration=2 * HOUR))
        self.assertEqual(self.aware(self.rows("Semaphore").get().expires_at), expires_at)

    def test_a_smaller_limit_counts_the_permits_that_are_out(self) -> None:
        for _ in range(3):
            self.take(limit=3)
        self.assertTrue(self.give(limit=1))
        self.assertFalse(self.take(limit=1))
        self.assertTrue(self.give(limit=1))
        self.assertFalse(self.take(limit=1))
        self.assertTrue(self.give(limit=1))
        self.assertEqual([self.take(limit=1), self.take(limit=1)], [True, False])
        self.assertEqual(self.left(), 0)

    def test_a_larger_limit_has_as_many_more_permits(self) -> None:
        self.take(limit=1)
        self.assertEqual([self.take(limit=3) for _ in range(3)], [True, True, False])
        self.assertEqual([self.give(limit=3) for _ in range(4)], [True, True, True, False])
        self.assertEqual(self.left(), 3)

    def test_a_permit_taken_in_a_transaction_goes_back_with_it(self) -> None:
        self.take(limit=2)
        with self.assertRaises(Refused), atomic(using=self.using):
            self.assertTrue(self.take(limit=2))
            self.assertTrue(self.take("new"))
            raise Refused
        self.assertEqual((self.left(), self.rows("Semaphore").count()), (1, 1))

    def test_of_many_threads_as_many_get_a_permit_as_there_are(self) -> None:
        """Also when the semaphore does not exist yet."""
        for key, limit in (("one", 1), ("three", 3)):
            together = Barrier(8, timeout=self.patience)

            def take(key: str = key, limit: int = limit, together: Barrier = together) -> bool:
                together.wait()
                return self.again(lambda: self.take(key, limit))

            self.assertEqual(self.in_threads([take] * 8).count(True), limit)
            self.assertEqual(self.left(key), 0)

    def test_many_threads_take_and_give_without_overrun(self) -> None:
        limit, lock, holders, most = 3, Lock(), [0], [0]

        def work() -> None:
            for _ in range(6):
                if not self.again(lambda: self.take(limit=limit)):
                    continue
                with lock:
                    holders[0] += 1
                    most[0] = max(most[0], holders[0])
                self.left()
                with lock:
                    holders[0] -= 1
                self.assertTrue(self.again(lambda: self.give(limit=limit)))

        self.in_threads([work] * 8)
        self.assertLessEqual(most[0], limit)
        self.assertEqual(self.left(), limit)
