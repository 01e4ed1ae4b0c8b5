"""What processes do all the time, for those who want to watch: records at DEBUG, and signals.

While nobody reads and nobody listens, an event costs two tests.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ...dialects import ClaimedJob
from ...logging import about, get_logger
from ...signals import (
    ProcessLifecycle,
    Signal,
    jobs_claimed,
    jobs_dispatched,
    jobs_unblocked,
    process_beat,
    process_polled,
    send,
)
from .connections import tidy_connections

logger = get_logger("steady_queue.process")


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

    def claimed(self, claims: Sequence[ClaimedJob]) -> None:
        """Tell of jobs that were claimed, if there are any."""
        if not claims:
            return
        if jobs_claimed.receivers:
            self._send(jobs_claimed, task_ids=[str(claim.job_id) for claim in claims])
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug(
                "Claimed %d jobs", len(claims), extra=about("worker.claimed", jobs=len(claims))
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
