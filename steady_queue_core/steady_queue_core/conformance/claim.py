"""Claiming: which jobs are claimed, and the facts of a claim."""

from __future__ import annotations

from datetime import timedelta

from django.db.transaction import atomic

from ..dialects.outcome import Ending
from ..dialects.queue_selector import QueueSelector
from .base import ConformanceCase, ending, new_job
from .transactions import Refused


class ClaimCases(ConformanceCase):
    def test_a_claim_tells_all_that_was_enqueued(self) -> None:
        job = new_job("mail", rank=-7, task_path="a.b", backend_name="other", arguments='{"x": 1}',
                      max_attempts=3)  # fmt: skip
        [new] = self.dialect.enqueue(self.connection, [job])
        before = self.present()
        [claim] = self.claim()
        for field in ("queue_name", "rank", "task_path", "backend_name", "arguments",
                      "max_attempts"):  # fmt: skip
            self.assertEqual(getattr(claim, field), getattr(job, field), field)
        self.assertEqual((claim.job_id, claim.enqueued_at), (new.job_id, new.enqueued_at))
        self.assertEqual(claim.attempts, 0)
        self.assertEqual((claim.worker_ids, claim.errors, claim.started_at), (None, None, None))
        self.assert_between(before, claim.claimed_at, self.present())
        for instant in (claim.enqueued_at, claim.claimed_at):
            self.assertEqual(instant.utcoffset(), timedelta(0))

    def test_a_claim_tells_of_earlier_attempts(self) -> None:
        first = self.claimed_job(new_job(max_attempts=5))
        started = self.present()
        self.settle(
            ending(Ending.RETRIED, first, attempts=1, worker_ids='["w"]', errors='[["E", "tb"]]',
                   started_at=started, last_attempted_at=started)
        )  # fmt: skip
        [second] = self.claim()
        self.assertEqual((second.job_id, second.attempts), (first.job_id, 1))
        self.assertEqual((second.worker_ids, second.errors), ('["w"]', '[["E", "tb"]]'))
        self.assertEqual(second.started_at, started)

    def test_a_claimed_job_moves_from_ready_to_claimed(self) -> None:
        [job_id] = self.enqueue(new_job("mail", rank=4))
        process_id = self.register()
        [claim] = self.claim(process_id=process_id)
        self.assertEqual((self.ids("Ready"), self.ids("Claimed")), ([], [job_id]))
        row = self.rows("ClaimedExecution").get()
        self.assertEqual((row.process_id, row.token), (process_id, claim.token))
        self.assertEqual((row.queue_name, row.rank), ("mail", 4))
        self.assertEqual(self.aware(row.created_at), claim.claimed_at)

    def test_the_token_is_greater_than_the_ready_rows(self) -> None:
        """However large it is: tokens must not overflow."""
        [job_id] = self.enqueue_many(1)
        for last in (0, 1, 41, 2**32 - 1, 2**32, 2**62):
            with atomic(using=self.using):
                self.rows("ReadyExecution").update(token=last)
                [claim] = self.claim()
                self.assertEqual(claim.job_id, job_id)
                self.assertGreater(claim.token, last)
                self.assertLess(claim.token, 2**63)
                self.assertEqual(self.rows("ClaimedExecution").get().token, claim.token)
                self.connection.set_rollback(True)

    def test_the_token_grows_with_each_claim_of_a_job(self) -> None:
        """For a job that was released, retried at once, and retried later."""
        claim = self.claimed_job()
        tokens = [claim.token]
        for outcome in (
            ending(Ending.RELEASED, claim),
            ending(Ending.RETRIED, claim, attempts=1),
            ending(Ending.RETRIED, claim, attempts=2, delay=60.0),
            ending(Ending.RELEASED, claim),
        ):
            self.assertEqual(self.settle(outcome._replace(token=tokens[-1])), {claim.job_id})
            for job_id in self.ids("Scheduled"):
                self.make_due(job_id)
            self.dialect.dispatch(self.connection, 10)
            tokens += [claim.token for claim in self.claim()]
        self.assertEqual(len(tokens), 5)
        self.assertEqual(tokens, sorted(set(tokens)))

    def test_an_earlier_life_of_the_database_has_given_out_other_tokens(self) -> None:
        """A database that was restored or failed over assigns the same ids again."""
        ids = self.enqueue_many(20)
        worker = self.register()
        tokens: list[int] = []
        for _ in range(3):
            with atomic(using=self.using):
                tokens += [claim.token for claim in self.claim(process_id=worker)]
                self.connection.set_rollback(True)
        self.assertEqual(len(set(tokens)), 3 * len(ids))

    def test_only_ready_jobs_are_claimed(self) -> None:
        claimed, failed, finished = self.enqueue_many(3)
        _, failing, finishing = self.claim()
        self.settle(self.failed(failing), self.finished(finishing))
        [scheduled] = self.enqueue(new_job(delay=timedelta(hours=1)))
        self.make_due(scheduled)
        self.assertEqual(self.claim(), [])
        self.assertEqual((self.ids("Claimed"), self.ids("Failed")), ([claimed], [failed]))
        self.assertIsNotNone(self.job(finished).finished_at)

    def test_an_empty_queue_gives_nothing(self) -> None:
        self.assertEqual(self.claim(), [])
        self.enqueue_many(1, "other")
        self.assertEqual(self.claim(10, "mail"), [])
        self.assertEqual(self.claim(10, "mail*"), [])

    def test_a_process_that_is_not_registered_gets_nothing(self) -> None:
        """It was pruned: its jobs may run elsewhere already."""
        ids = self.enqueue_many(2)
        gone = self.register()
        self.rows("Process").filter(pk=gone).delete()
        self.assertEqual(self.claim(process_id=gone), [])
        self.assertEqual(self.claim(10, "default", process_id=gone), [])
        self.assertEqual(self.ids("Ready"), ids)

    def test_a_process_of_an_earlier_life_gets_nothing_under_the_id_of_another(self) -> None:
        """A restored database has assigned its id to a process of another name."""
        ids = self.enqueue_many(2)
        process = self.identity(self.register())
        earlier = process._replace(name="of an earlier life")
        for patterns in (("*",), ("default",), ("d*",)):
            selector = QueueSelector(patterns=patterns)
            self.assertEqual(self.dialect.claim(self.connection, earlier, selector, 10), [])
        self.assertEqual(self.ids("Ready"), ids)
        self.assertEqual(len(self.claim(process_id=process.id)), 2)

    def test_a_claim_takes_no_more_than_its_limit(self) -> None:
        ids = self.enqueue_many(5)
        self.assertEqual([claim.job_id for claim in self.claim(2)], ids[:2])
        self.assertEqual(self.ids("Ready"), ids[2:])
        self.assertEqual(len(self.claim(3)), 3)

    def test_a_limit_of_nothing_takes_nothing(self) -> None:
        ids = self.enqueue_many(2)
        for patterns in ((), ("default",), ("def*",)):
            self.assertEqual(self.claim(0, *patterns), [])
        self.assertEqual(self.ids("Ready"), ids)

    def test_a_claim_that_is_rolled_back_puts_the_jobs_back(self) -> None:
        ids = self.enqueue_many(2)
        process_id = self.register()
        before = self.everything()
        with self.assertRaises(Refused), atomic(using=self.using):
            self.assertEqual(len(self.claim(process_id=process_id)), 2)
            raise Refused
        self.assertEqual(self.everything(), before)
        self.assertEqual([claim.job_id for claim in self.claim()], ids)

    def test_a_claim_joins_the_callers_transaction(self) -> None:
        """Other connections see it after the commit, not before."""
        [job_id] = self.enqueue_many(1)
        process_id = self.register()
        with atomic(using=self.using):
            self.claim(process_id=process_id)
            self.assertEqual(self.elsewhere(lambda: self.ids("Claimed")), [])
        self.assertEqual(self.elsewhere(lambda: self.ids("Claimed")), [job_id])
