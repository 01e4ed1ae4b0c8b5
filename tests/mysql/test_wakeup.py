"""Every listener is woken, whoever of the workers holds the lock that the others wait for."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from unittest import mock

from django.db import DatabaseError, InterfaceError, OperationalError

from steady_queue_mysql import wakeup

from .cases import ServerCase, on_each_server


class Listeners(ServerCase):
    @contextmanager
    def listeners(self, count: int) -> Iterator[list[wakeup.Listener]]:
        made = [wakeup.Listener(self.connection) for _ in range(count)]
        try:
            self.wait_until(lambda: len(self.waiting()) == count, "all to wait")
            yield made
        finally:
            for each in made:
                each.close()
            for number, _ in self.waiting():
                with suppress(DatabaseError):  # It may have ended meanwhile.
                    self.sql(f"KILL {number}")

    def waiting(self) -> list[tuple[int, str]]:
        """Return the connections that wait, and with which statement."""
        schema = "information_schema" if self.on_mariadb else "performance_schema"
        return self.sql(
            f"SELECT id, info FROM {schema}.processlist WHERE command = 'Query' "
            "AND db = DATABASE() AND info LIKE 'SELECT %% AS steady_queue_wakeup' AND id <> %s",
            0,
        )

    def heard(self, made: list[wakeup.Listener], patience: float = 10.0) -> int:
        """Count those that were woken, and clear them."""
        deadline = monotonic() + patience
        woken: set[int] = set()
        while len(woken) < len(made) and monotonic() < deadline:
            woken |= set(select.select([each.fileno() for each in made], [], [], 0.05)[0])
        for each in made:
            each.clear()
        return len(woken)

    def test_all_of_several_listeners_are_woken_each_time(self) -> None:
        """As long as none of them is between two statements, where workers poll: here, these end
        by nothing but a ring."""
        patient = {name: getattr(wakeup, name).replace("5)", "60)") for name in ("WAIT", "SLEEP")}
        with (
            mock.patch.multiple(wakeup, NOTIFY_INTERVAL=0.0, **patient),
            self.listeners(3) as made,
        ):
            settled = sorted([wakeup.SLEEP, wakeup.WAIT, wakeup.WAIT])
            for _ in range(10):
                self.wait_until(
                    lambda: sorted(text for _, text in self.waiting()) == settled, "all to wait"
                )
                self.dialect.ring(self.connection, ["default"])
                self.assertEqual(self.heard(made), 3)

    def test_one_sleeps_and_the_others_wait_for_it(self) -> None:
        """MariaDB takes up to seconds to wake the second of two that sleep."""
        with self.listeners(3) as made:
            statements = [statement for _, statement in self.waiting()]
            self.assertEqual(sorted(statements), sorted([wakeup.SLEEP, wakeup.WAIT, wakeup.WAIT]))
            [(sleeper, _)] = [row for row in self.waiting() if row[1] == wakeup.SLEEP]
            self.sql(f"KILL {sleeper}")  # Then another one holds the lock.
            self.wait_until(
                lambda: [text for number, text in self.waiting() if number != sleeper].count(
                    wakeup.SLEEP
                ) == 1, "a new sleeper",
            )  # fmt: skip
            self.dialect.ring(self.connection, ["default"])
            self.assertGreaterEqual(self.heard(made), 2)

    def test_a_ring_that_follows_at_once_is_left_out(self) -> None:
        notifier = wakeup.Notifier()
        with (
            mock.patch.object(wakeup, "NOTIFY_INTERVAL", 60.0),
            mock.patch.object(notifier, "_wake", wraps=notifier._wake) as wake,
        ):
            for _ in range(5):
                notifier.notify(self.connection)
        self.assertEqual(wake.call_count, 1)

    def test_a_ring_that_fails_fails_nobody(self) -> None:
        with mock.patch.object(wakeup, "FIND", "SELECT nonsense FROM {schema}.processlist -- %s"):
            wakeup.Notifier().notify(self.connection)
        self.assertEqual(len(self.enqueue_many(1)), 1)
        for error in (OperationalError("gone"), InterfaceError("gone")):
            with mock.patch.object(wakeup, "execute_all", side_effect=error):
                wakeup.Notifier().notify(self.connection)

    def test_nothing_rings_by_itself(self) -> None:
        with (
            mock.patch.object(wakeup, "WAIT", wakeup.WAIT.replace("5)", "1)")),
            mock.patch.object(wakeup, "SLEEP", "SELECT SLEEP(1) AS steady_queue_wakeup"),
            self.listeners(2) as made,
        ):
            self.assertEqual(self.heard(made, patience=2.0), 0)


on_each_server(globals(), Listeners)
