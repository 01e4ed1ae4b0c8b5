"""What a dialect does while a transaction keeps a semaphore locked, where rows can be."""

from __future__ import annotations

from datetime import timedelta

from steady_queue_core.dialects.conformance.base import ConformanceCase, limited_job, new_job


class KeptSemaphores(ConformanceCase):
    """Mixed into a test case of a server."""

    #: Has the session wait for locks as briefly as it can, and as long as before.
    impatience: tuple[str, str]

    def execute(self, statement: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)

    def test_a_semaphore_that_is_kept_locked_holds_up_only_its_own_jobs(self) -> None:
        late = timedelta(hours=1)
        self.enqueue(limited_job("kept"), limited_job("free"))
        kept, *others = self.enqueue(
            *(limited_job(key, delay=late) for key in ("kept", "free", "new")), new_job(delay=late)
        )
        self.execute("UPDATE steady_queue_scheduled_executions SET due_at = created_at")
        brief, usual = self.impatience
        self.execute(brief)
        self.addCleanup(self.execute, usual)
        key = self.connection.ops.quote_name("key")
        lock = f"SELECT 1 FROM steady_queue_semaphores WHERE {key} = 'kept' FOR UPDATE"
        with self.holding(lambda: self.execute(lock)):
            # The first one of a batch that is full.
            assert self.dialect.dispatch(self.connection, 1) == (1, 0.0)
            assert self.ids("Scheduled") == [kept, *others[:2]]
            assert self.dialect.dispatch(self.connection, 9) == (2, 0.0)
            assert self.dialect.dispatch(self.connection, 9) == (0, 0.0)
        assert self.dialect.dispatch(self.connection, 9) == (1, None)
