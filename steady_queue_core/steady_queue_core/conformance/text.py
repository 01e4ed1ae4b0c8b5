"""Text is stored unchanged, character for character."""

from __future__ import annotations

import json

from ..dialects.outcome import Ending
from .base import ConformanceCase, ending, new_job

#: What databases, drivers and placeholders like to change.
TEXTS = (
    "", " ", " trailing blanks  ", "%s %(name)s %% {0} $1 :name ?", "quotes ' \" ` ''",
    "back\\slash\\", "line\nbreak\r\nand\ttab", "é e\u0301 ß Ω 漢字", "😀 \U0010ffff \uffff",
    "null NULL true 1e5",
    json.dumps({"b": 1, "a": [1.0, 12345678901234567890, 0.1]}),
)  # fmt: skip
#: Above the sizes at which text types of some databases end (64 KiB) or are kept elsewhere.
LARGE = "0123456789 é😀" * 50_000


class TextCases(ConformanceCase):
    def test_arguments_are_stored_exactly(self) -> None:
        self.enqueue(*[new_job(arguments=text) for text in (*TEXTS, LARGE)])
        for claim, text in zip(self.claim(), (*TEXTS, LARGE), strict=True):
            self.assertEqual(claim.arguments, text)

    def test_names_are_stored_exactly(self) -> None:
        for text in (text for text in TEXTS if text):
            claim = self.claimed_job(new_job(text, task_path=text, backend_name=text))
            self.assertEqual((claim.queue_name, claim.task_path, claim.backend_name), (text,) * 3)
            self.settle(self.finished(claim))

    def test_return_values_errors_and_worker_ids_are_stored_exactly(self) -> None:
        for text in (*TEXTS, LARGE):
            claim = self.claimed_job()
            self.settle(self.finished(claim, return_value=text, errors=text, worker_ids=text))
            job = self.job(claim.job_id)
            self.assertEqual((job.return_value, job.errors, job.worker_ids), (text,) * 3)

    def test_errors_of_a_retried_job_are_told_exactly(self) -> None:
        for text in (*TEXTS, LARGE):
            claim = self.claimed_job()
            retried = ending(Ending.RETRIED, claim, attempts=1, errors=text, worker_ids=text)
            self.settle(retried)
            [again] = self.claim()
            self.assertEqual((again.errors, again.worker_ids), (text, text))
            self.settle(self.finished(again))

    def test_messages_of_failed_jobs_are_stored_exactly(self) -> None:
        for text in (*TEXTS, LARGE):
            claim = self.claimed_job()
            self.settle(self.failed(claim, message=text, exception_class=text[:200]))
            row = self.rows("FailedExecution").get(pk=claim.job_id)
            self.assertEqual((row.message, row.exception_class), (text, text[:200]))

    def test_what_is_missing_is_not_an_empty_text(self) -> None:
        """Empty text is not NULL."""
        claim = self.claimed_job()
        self.settle(self.finished(claim, return_value=None, errors="", worker_ids=None))
        job = self.job(claim.job_id)
        self.assertEqual((job.return_value, job.errors, job.worker_ids), (None, "", None))
