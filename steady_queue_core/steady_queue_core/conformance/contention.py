"""Two transactions that keep each other from going on."""

from __future__ import annotations

from threading import Event

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from .base import ConformanceCase


class ContentionCase(ConformanceCase):
    def shorten_lock_wait(self, connection: BaseDatabaseWrapper) -> None:
        """Let ``connection`` wait for locks a short time only, so that a case takes less.

        May be overridden. Without it the case of real contention takes as long as the database
        needs to see a deadlock, or to give up waiting.
        """

    def provoke_contention(self) -> BaseException:
        """Make two transactions deadlock; return the error of the loser."""
        pair = self.enqueue_many(2)
        holds, told = [False, False], (Event(), Event())

        def fight(me: int) -> BaseException | None:
            other = 1 - me
            rows = self.rows("ReadyExecution")
            self.shorten_lock_wait(self.connection)
            try:
                with atomic(using=self.using):
                    mine = rows.filter(pk=pair[me])
                    list(self.dialect.lock_rows(self.connection, mine, wait=True))
                    holds[me] = True
                    told[me].set()
                    # If the first lock was the whole database, the other waits until it fails.
                    told[other].wait(self.patience)
                    if holds[other]:
                        rows.filter(pk=pair[other]).update(rank=me)
            except DatabaseError as error:
                return error
            finally:
                told[me].set()
            return None

        errors = self.in_threads([lambda: fight(0), lambda: fight(1)])
        [lost] = [error for error in errors if error is not None]
        return lost
