"""A job that is settled in the transaction of its task, which has begun long before."""

from __future__ import annotations

from concurrent.futures import wait

from django.db.transaction import atomic

from ..dialects.outcome import Ending
from .base import ConformanceCase, ending, limited_job, new_job
from .transactions import Refused


class DeliveryCases(ConformanceCase):
    def test_a_claim_ends_with_the_transaction_of_its_task(self) -> None:
        """Others see what the task has written and the outcome at once, or neither."""
        for commits in (True, False):
            claim = self.claimed_job()
            before = self.everything()
            try:
                with self.dialect.transaction(self.connection):
                    with atomic(using=self.using):
                        self.enqueue(new_job("written"))
                    self.assertEqual(self.settle(self.finished(claim)), {claim.job_id})
                    seen = self.elsewhere(lambda: (self.ids("Claimed"), self.ids("Ready")))
                    self.assertEqual(seen, ([claim.job_id], []))
                    if not commits:
                        raise Refused
            except Refused:
                self.assertEqual(self.everything(), before)
            else:
                self.assertEqual(self.ids("Claimed"), [])
                [written] = self.ids("Ready")
                self.assertEqual(self.job(written).queue_name, "written")
                self.rows("ReadyExecution").all().delete()
                self.rows("Job").all().delete()

    def test_a_claim_that_ends_while_its_task_runs_is_not_held_any_more(self) -> None:
        """The transaction has read the claim before: it must see what has happened since. Where it
        keeps all others from writing, it still holds the claim, and they do not."""
        claim = self.claimed_job()
        release = ending(Ending.RELEASED, claim)
        with self.dialect.transaction(self.connection):
            self.assertEqual(self.ids("Claimed"), [claim.job_id])
            other = self.begin(lambda: self.dialect.settle(self.connection, [release]))
            wait([other], timeout=1.0)
            ours = self.settle(self.finished(claim))
        held = [ours, other.result(timeout=self.patience)]
        self.assertEqual(sorted(held, key=len), [set(), {claim.job_id}])
        self.assertEqual(self.ids("Ready"), [] if ours else [claim.job_id])

    def test_a_permit_passes_on_with_the_transaction_of_the_task(self) -> None:
        first, second = self.enqueue(limited_job(), limited_job())
        [claim] = self.claim()
        for commits in (False, True):
            try:
                with self.dialect.transaction(self.connection):
                    self.enqueue(new_job())
                    self.settle(self.finished(claim))
                    if not commits:
                        raise Refused
            except Refused:
                self.assertEqual((self.ids("Claimed"), self.ids("Blocked")), ([first], [second]))
            self.check_permits()
        self.assertEqual(self.ids("Blocked"), [])
        self.assertIn(second, self.ids("Ready"))
