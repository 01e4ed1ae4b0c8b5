"""What processes do all the time, for those who want to watch: records at DEBUG, and signals.

While nobody reads and nobody listens, an event costs two tests.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ...dialects import ClaimedJob, Outcome
from ...logging import about, get_logger
from ...signals import (
    ProcessLifecycle,
    Signal,
    jobs_claimed,
    jobs_dispatched,
    jobs_settled,
    jobs_unblocked,
    process_beat,
    process_polled,
    send,
)
from ...tasks.metadata import JobMetadata
from .connections import tidy_connections

logger = get_logger("steady_queue.process")


class HeldJob:
    """A job that a worker has claimed, or has settled. What its row holds is as trustworthy as
    whoever can write to the database."""

    __slots__ = ("_claim", "_outcome")

    def __init__(self, claim: ClaimedJob, outcome: Outcome | None = None) -> None:
        self._claim, self._outcome = claim, outcome

    @property
    def task_id(self) -> str:
        """The id of its result."""
        return str(self._claim.job_id)

    @property
    def task(self) -> str:
        """The path of its task."""
        return str(self._claim.task_path)

    @property
    def queue_name(self) -> str:
        """The name of its queue."""
        return str(self._claim.queue_name)

    @property
    def backend(self) -> str:
        """The key of its backend in ``TASKS``."""
        return str(self._claim.backend_name)

    @property
    def headers(self) -> dict[str, str]:
        """What middleware has given it on its way."""
        metadata = self._claim.metadata
        return {} if metadata is None else dict(JobMetadata.read(metadata).headers)

    @property
    def outcome(self) -> str | None:
        """What has become of it: ``"finished"``, ``"failed"``, ``"retried"`` or ``"released"``;
        ``None``: it was claimed just now."""
        return None if self._outcome is None else self._outcome.ending.value

    @property
    def exception_class(self) -> str:
        """The path of the class of the error that has ended the attempt; ``""``: none has."""
        return "" if self._outcome is None else self._outcome.exception_class


class Events:
    """The events of one process. Call it in the thread that does its work."""

    def __init__(self, kind: str, name: str, using: str) -> None:
        self._payload = {"process_kind": kind, "process_name": name, "using": using}

    def polled(self, found: int, wanted: int, seconds: float) -> None:
        """Tell of a look for jobs that took so many ``seconds``."""
        if process_polled.receivers:
            duration = timedelta(seconds=seconds)
            self._send(process_polled, found=found, wanted=wanted, duration=duration)
        if logger.isEnabledFor(logging.DEBUG):
            milliseconds = round(seconds * 1000, 3)
            logger.debug(
                "Looked for jobs: %d of up to %d in %.1f ms",
                found,
                wanted,
                milliseconds,
                extra=about("process.polled", jobs=found, duration_ms=milliseconds),
            )

    def claimed(self, claims: Sequence[ClaimedJob], seconds: float) -> None:
        """Tell of jobs that were claimed, if there are any, which took so many ``seconds``."""
        if not claims:
            return
        if jobs_claimed.receivers:
            self._send(
                jobs_claimed,
                task_ids=[str(claim.job_id) for claim in claims],
                jobs=[HeldJob(claim) for claim in claims],
                duration=timedelta(seconds=seconds),
            )
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug(
                "Claimed %d jobs", len(claims), extra=about("worker.claimed", jobs=len(claims))
            )

    def settled(self, ended: Sequence[tuple[ClaimedJob, Outcome]], seconds: float | None) -> None:
        """Tell of jobs whose outcomes are stored; ``None``: by their tasks, in some time."""
        if ended and jobs_settled.receivers:
            self._send(
                jobs_settled,
                jobs=[HeldJob(claim, outcome) for claim, outcome in ended],
                duration=None if seconds is None else timedelta(seconds=seconds),
            )

    def dispatched(self, jobs: int) -> None:
        """Tell of scheduled jobs that were moved because they are due."""
        if jobs_dispatched.receivers:
            self._send(jobs_dispatched, jobs=jobs)

    def unblocked(self, jobs: int) -> None:
        """Tell of blocked jobs that maintenance has made ready."""
        if jobs_unblocked.receivers:
            self._send(jobs_unblocked, jobs=jobs)

    def beat(self) -> None:
        """Tell of a heartbeat that is stored."""
        if process_beat.receivers:
            self._send(process_beat)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("Heartbeat", extra=about("process.beat"))

    def _send(self, signal: Signal, **payload: Any) -> None:
        send(signal, ProcessLifecycle, **self._payload, pid=os.getpid(), **payload)
        tidy_connections()  # Of what a receiver has left open.
