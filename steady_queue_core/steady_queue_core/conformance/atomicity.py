"""What is done to jobs is done once, whatever happens between the statements that do it."""

from __future__ import annotations

from .interrupted import OTHERS, InterruptedCase


class AtomicityCases(InterruptedCase):
    def test_a_job_lives_once_wherever_its_transactions_are_aborted(self) -> None:
        self.assertGreater(self.everywhere(self.abort, self.live), 5)

    def test_a_job_lives_once_wherever_those_of_the_caller_are_aborted(self) -> None:
        self.joins = True
        self.assertGreater(self.everywhere(self.abort, self.live), 5)

    def test_jobs_of_one_call_keep_their_ids_whatever_comes_between(self) -> None:
        self.assertGreater(self.everywhere(self.disturb, self.enqueue_of_each_kind), 0)
        for other in self._others:
            [job_id] = other.result(timeout=self.patience)
            self.assertEqual(self.job(job_id).queue_name, OTHERS)
