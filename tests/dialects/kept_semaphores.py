"""What a dispatch does while a transaction keeps locked what some jobs need, where rows can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest import mock

from steady_queue_core.conformance.base import ConformanceCase, limited_job, new_job
from steady_queue_core.dialects import apart
from steady_queue_core.features.fair import of_database as fair_queues
from steady_queue_core.features.fair.queues import FairQueues

LATE = timedelta(hours=1)


class KeptSemaphores(ConformanceCase):
    """Mixed into a test case of a server."""

    #: Options of the connections of others, for their isolation level.
    options_of_others: Mapping[str, Any] = {}
    #: Has the session wait for locks as briefly as it can, and as long as before.
    impatience: tuple[str, str]

    def setUp(self) -> None:
        super().setUp()
        options = self.connection.settings_dict["OPTIONS"]
        self.enterContext(mock.patch.dict(options, self.options_of_others))
        vars(self.connection).pop("steady_queue_held_up", None)
        self.addCleanup(vars(self.connection).pop, "steady_queue_held_up", None)

    def execute(self, statement: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)

    def be_impatient(self) -> None:
        brief, usual = self.impatience
        self.execute(brief)
        self.addCleanup(self.execute, usual)

    def have_fair_queue(self) -> None:
        queues = FairQueues({"fair": 1.0})
        self.enterContext(mock.patch.object(fair_queues, "_source", return_value=queues))
        self.enterContext(mock.patch.object(fair_queues, "_known", {}))
        self.enqueue(fair_job("free"))

    def due(self, *jobs: Any) -> list[int]:
        """Enqueue jobs that are due."""
        job_ids = self.enqueue(*jobs)
        self.execute("UPDATE steady_queue_scheduled_executions SET due_at = created_at")
        return job_ids

    def test_a_semaphore_that_is_kept_locked_holds_up_only_its_own_jobs(self) -> None:
        self.enqueue(limited_job("kept"), limited_job("free"))
        kept, *others = self.due(
            *(limited_job(key, delay=LATE) for key in ("kept", "free", "new")), new_job(delay=LATE)
        )
        self.be_impatient()
        key = self.connection.ops.quote_name("key")
        lock = f"SELECT 1 FROM steady_queue_semaphores WHERE {key} = 'kept' FOR UPDATE"
        with self.holding(lambda: self.execute(lock)):
            # The first one of a batch that is full.
            assert self.dialect.dispatch(self.connection, 1) == (1, 0.0)
            assert self.ids("Scheduled") == [kept, *others[:2]]
            assert self.dialect.dispatch(self.connection, 9) == (2, 0.0)
            assert self.dialect.dispatch(self.connection, 9) == (0, 0.0)
        assert self.dialect.dispatch(self.connection, 9) == (1, None)

    def assert_held_up(self, kept: Any, others: list[Any], holder: Callable[[], Any]) -> None:
        """Check that ``holder`` keeps only one of these due jobs waiting, and only once."""
        held_up, *_ = self.due(kept, *others)
        self.be_impatient()
        with self.holding(holder) as end:
            self.dialect.dispatch(self.connection, 9)
            assert self.ids("Scheduled") == [held_up]
            self.due(*others)
            with self.never_waiting():
                self.dialect.dispatch(self.connection, 9)
            assert self.ids("Scheduled") == [held_up]
            end(commit=True)
        assert self.dialect.dispatch(self.connection, 9) == (1, None)

    @contextmanager
    def never_waiting(self) -> Iterator[None]:
        with mock.patch.object(apart.HeldUp, "note", side_effect=AssertionError("it has waited")):
            yield

    def test_a_semaphore_that_somebody_creates_holds_up_only_its_own_jobs(self) -> None:
        self.assert_held_up(
            limited_job("kept", delay=LATE),
            [limited_job("free", delay=LATE), *[new_job(name, delay=LATE) for name in "abc"]],
            lambda: self.enqueue(limited_job("kept")),
        )

    def test_a_fair_key_that_is_kept_locked_holds_up_only_its_own_jobs(self) -> None:
        self.have_fair_queue()
        self.enqueue(fair_job("locked"))
        self.keep_fair_key("locked")

    def test_a_fair_key_that_somebody_creates_holds_up_only_its_own_jobs(self) -> None:
        self.have_fair_queue()
        self.keep_fair_key("kept")

    def keep_fair_key(self, kept: str) -> None:
        # Keys beside it that no other test has had: a server may keep the gaps of deleted ones
        # locked until they are purged.
        self.assert_held_up(
            fair_job(kept, delay=LATE),
            [
                *[fair_job(key, delay=LATE) for key in ("free", kept[:-1], f"{kept}1", "new")],
                new_job(delay=LATE),
                limited_job("one", delay=LATE),
            ],
            lambda: self.enqueue(fair_job(kept)),
        )

    def test_a_semaphore_holds_up_no_job_of_a_fair_queue(self) -> None:
        self.have_fair_queue()
        self.assert_held_up(
            limited_job("kept", delay=LATE),
            [fair_job("free", delay=LATE), new_job(delay=LATE)],
            lambda: self.enqueue(limited_job("kept")),
        )


def fair_job(key: str, **fields: Any) -> Any:
    return new_job("fair", metadata=f'{{"fair": "{key}"}}', fair_key=key, **fields)
