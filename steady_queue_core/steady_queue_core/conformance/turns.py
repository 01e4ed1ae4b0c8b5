"""Turns: the order of ready jobs within a rank, and how jobs of fair queues get them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise

from django.db.transaction import atomic

from ..dialects.outcome import Ending
from ..dialects.records import Arrival, Level
from .base import ConformanceCase, ending, limited_job, new_job

#: Later than the id of any job; and later than any turn.
AHEAD, FAR = 2.0**50, 2.0**60


class TurnCases(ConformanceCase):
    def turns(self) -> dict[int, float]:
        """Return the turns of all ready jobs, by their ids."""
        return dict(self.rows("ReadyExecution").values_list("pk", "turn"))

    def set_turns(self, **turns: float) -> None:
        """Set the turns of ready jobs, by the names of their queues."""
        for queue_name, turn in turns.items():
            self.rows("ReadyExecution").filter(queue_name=queue_name).update(turn=turn)

    def test_jobs_that_become_ready_have_their_ids_for_turns(self) -> None:
        held = self.claimed_job(limited_job("other"))
        ways: list[Callable[[], object]] = [
            lambda: self.enqueue(new_job()),
            lambda: self.enqueue(new_job(), new_job(rank=1)),
            lambda: self.enqueue(new_job(metadata="{}"), new_job()),
            lambda: self.enqueue(limited_job("free")),
            lambda: self.dispatched(),
            lambda: self.settle(ending(Ending.RETRIED, self.claimed_job(), attempts=1)),
            lambda: self.settle(ending(Ending.RELEASED, self.claimed_job())),
            lambda: self.settle(ending(Ending.RELEASED, self.claimed_job(limited_job("kept")))),
            lambda: (self.enqueue(limited_job("other")), self.settle(self.finished(held))),
        ]
        for way in ways:
            self.settle(*map(self.finished, self.claim()))
            way()
            turns = self.turns()
            self.assertTrue(turns)
            self.assertEqual(turns, {job_id: job_id for job_id in turns})

    def dispatched(self) -> None:
        [job_id] = self.enqueue(new_job(delay=timedelta(hours=1)))
        self.make_due(job_id)
        self.dialect.dispatch(self.connection, 10)

    def test_among_equal_ranks_the_smaller_turn_comes_first(self) -> None:
        for patterns in ((), ("q_*",), ("q_a",)):
            ids = self.enqueue_many(4, "q_a")
            for turn, job_id in zip((7.5, 7.25, FAR, 0.5), ids, strict=True):
                self.rows("ReadyExecution").filter(pk=job_id).update(turn=turn)
            expected = [ids[3], ids[1], ids[0], ids[2]]
            claims = [*self.claim(3, *patterns), *self.claim(3, *patterns)]
            self.assertEqual([claim.job_id for claim in claims], expected, patterns)

    def test_turns_are_compared_over_all_queues(self) -> None:
        self.enqueue(*[new_job(name) for name in ("a", "b", "c", "d")])
        self.set_turns(a=3.0, b=2.5, c=1.0, d=2.0)
        self.rows("ReadyExecution").filter(queue_name="c").update(rank=1)
        self.pause("d")
        self.assertEqual([claim.queue_name for claim in self.claim(10)], ["b", "a", "c"])

    # --- rows of keys

    def test_keys_are_locked_and_created_in_their_order(self) -> None:
        self.rows("Turn").create(queue_name="fair", key="a", rank=0, turn=5.5)
        long = "\U0001f601" * 255
        levels = [Level("fair", 0), Level("fair", 1), Level("FAIR", 0), Level(long, 0)]
        keys = [(level, text) for level in levels for text in ("A", "a", long)]
        known = dict.fromkeys(keys, 0.0) | {(levels[0], "a"): 5.5}
        later = {key: number + 0.25 for number, key in enumerate(keys)}
        for expected in (known, later):
            with self.dialect.transaction(self.connection):
                found = self.dialect.lock_turns(self.connection, keys)
                self.assertEqual({key: row.turn for key, row in found.items()}, expected)
                rows = {key: row._replace(turn=later[key]) for key, row in found.items()}
                self.dialect.save_turns(self.connection, rows)
        self.assertEqual(self.rows("Turn").count(), len(keys))

    def test_a_key_that_somebody_has_locked_is_waited_for(self) -> None:
        """Whether it existed before or not."""
        key = (Level("fair", 0), "a")

        def move_on() -> None:
            with self.dialect.transaction(self.connection):
                [row] = self.dialect.lock_turns(self.connection, [key]).values()
                later = row._replace(turn=row.turn + 1)
                self.dialect.save_turns(self.connection, {key: later})

        for expected in (2, 4):
            with self.holding(move_on) as end:
                waiting = self.begin(lambda: self.again(move_on))
                end(commit=True)
                waiting.result(timeout=self.patience)
            self.assertEqual(self.next_turn(), expected)

    # --- one job of a fair queue

    def arrive(
        self, key: str = "a", queue_name: str = "fair", rank: int = 0, weight: float = 1.0
    ) -> tuple[int, float]:
        """Enqueue a job, and give it its turn; return its id and the turn."""
        if not self.dialect.takes_turns:
            self.skipTest("the dialect leaves turns to the core")
        with self.dialect.transaction(self.connection):
            [job_id] = self.enqueue(new_job(queue_name, rank=rank))
            arrival = Arrival(job_id, queue_name, rank, key, weight)
            self.dialect.take_turn(self.connection, arrival)
        return job_id, self.turns()[job_id]

    def next_turn(self, key: str = "a", queue_name: str = "fair", rank: int = 0) -> float:
        row = self.rows("Turn").get(queue_name=queue_name, key=key, rank=rank)
        return float(row.turn)

    def test_in_an_idle_queue_a_job_takes_the_turn_of_its_id(self) -> None:
        job_id, turn = self.arrive()
        self.assertEqual(turn, job_id + 0.001)
        self.assertAlmostEqual(self.next_turn(), job_id + 1, places=2)

    def test_a_key_moves_on_by_the_inverse_of_its_weight(self) -> None:
        first, _ = self.arrive()
        self.assertAlmostEqual(self.arrive()[1], first + 1, places=2)
        self.rows("Share").create(queue_name="fair", key="a", weight=4.0)
        self.assertAlmostEqual(self.arrive(weight=2.0)[1], first + 2, places=2)
        self.assertAlmostEqual(self.arrive(weight=2.0)[1], first + 2.25, places=2)
        self.assertAlmostEqual(self.next_turn(), first + 2.5, places=2)

    def test_a_key_without_a_weight_has_the_default_one(self) -> None:
        for name, key in (("other", "a"), ("fair", "A"), ("fair", "a ")):
            self.rows("Share").create(queue_name=name, key=key, weight=8.0)
        first, _ = self.arrive(weight=2.0)
        self.assertAlmostEqual(self.next_turn(), first + 0.5, places=2)

    def test_a_key_that_has_waited_moves_up_to_the_first_turn(self) -> None:
        self.rows("Turn").create(queue_name="fair", key="a", rank=0, turn=0.5)
        self.enqueue(new_job("fair"), new_job("fair"))
        first = min(self.turns())
        self.assertAlmostEqual(self.arrive()[1], first, places=2)
        self.assertAlmostEqual(self.next_turn(), first + 1, places=2)

    def test_a_key_that_is_ahead_stays_there(self) -> None:
        self.rows("Turn").create(queue_name="fair", key="a", rank=0, turn=AHEAD)
        _, turn = self.arrive()
        self.assertEqual((turn, self.next_turn()), (AHEAD, AHEAD + 1))

    def test_keys_queues_and_ranks_have_turns_of_their_own(self) -> None:
        others = (("A", "fair", 0), ("a ", "fair", 0), ("a", "FAIR", 0), ("a", "fair", 1))
        for key, queue_name, rank in others:
            self.rows("Turn").create(queue_name=queue_name, key=key, rank=rank, turn=AHEAD)
        self.enqueue(new_job("plain"), new_job("FAIR"), new_job("fair", rank=1))
        self.rows("ReadyExecution").update(turn=0.25)
        job_id, turn = self.arrive()
        self.assertEqual(turn, job_id + 0.001)
        for key, queue_name, rank in others:
            self.assertEqual(self.next_turn(key, queue_name, rank), AHEAD)

    def test_what_no_queue_has_stored_counts_for_nothing(self) -> None:
        self.rows("Turn").create(queue_name="fair", key="a", rank=0, turn=FAR)
        for key, weight in (("a", 0.5), ("b", -1.0), ("c", FAR), ("d", 0.0)):
            self.rows("Share").create(queue_name="fair", key=key, weight=weight)
        first, _ = self.arrive("a")
        self.assertAlmostEqual(self.next_turn("a"), first + 1, places=2)
        self.rows("ReadyExecution").update(turn=-FAR)
        for key in "bcd":
            job_id, turn = self.arrive(key)
            self.assertAlmostEqual(turn, job_id, places=2)
            self.assertAlmostEqual(self.next_turn(key), job_id + 1, places=2)
            self.rows("ReadyExecution").update(turn=FAR)

    def test_the_longest_names_have_turns(self) -> None:
        key, queue_name = "\U0001f600" * 255, "\U0001f601" * 255
        job_id, _ = self.arrive(key, queue_name)
        self.assertAlmostEqual(self.next_turn(key, queue_name), job_id + 1, places=2)

    def test_a_turn_ends_with_its_transaction(self) -> None:
        with self.assertRaises(ZeroDivisionError), atomic(using=self.using):
            self.arrive()
            raise ZeroDivisionError
        self.assertEqual(list(self.rows("Turn")), [])

    def test_many_at_once_take_one_turn_after_the_other(self) -> None:
        def arrive_often() -> None:
            for _ in range(5):
                self.again(self.arrive)

        self.in_threads([arrive_often] * 4)
        turns = sorted(self.turns().values())
        self.assertEqual(len(turns), 20)
        # A job is stored before it takes its turn: that of its key may be further on by then.
        self.assertAlmostEqual(self.next_turn(), turns[-1] + 1, places=2)
        for former, later in pairwise(turns):
            self.assertGreater(later, former + 0.99)
