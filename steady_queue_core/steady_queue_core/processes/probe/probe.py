"""Probe: the process, or thread, that serves ``/livez``, ``/readyz`` and ``/metrics``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock, Thread

from ...errors import PrometheusMissing
from ..base.connection_setup import as_control_thread
from ..base.context import ProcessContext
from ..base.shared_heartbeat import Beat, SharedHeartbeat
from .readiness import PATIENCE, Readiness
from .server import Answer, ProbeServer, Route

#: Seconds after which a supervisor that has not come round counts as dead.
MOST_SILENCE = 30.0
#: Seconds that requests get to be answered once others answer in its place.
GRACE = 5.0
#: Seconds between two looks of the server whether it is to end.
POLL = 0.1

#: Returns the metrics in a format of the Accept header, and its content type.
Metrics = Callable[[str | None], tuple[bytes, str]]


class Probe:
    """Answers until a stop is requested. It has no row in the table of processes."""

    kind = "probe"

    def __init__(
        self,
        context: ProcessContext,
        *,
        descriptor: int,
        heartbeat: SharedHeartbeat,
        databases: Sequence[str],
        metrics: Metrics | None,
    ) -> None:
        self.context, self.heartbeat = context, heartbeat
        self.readiness = Readiness(context, heartbeat, databases)
        self._scraping = Lock()
        routes: dict[str, Route] = {"/livez": self._livez, "/readyz": self._readyz}
        if metrics is not None:
            routes["/metrics"] = partial(self._metricsz, metrics)
        self.server = ProbeServer(descriptor, routes)

    def run(self) -> None:
        """Serve until a stop is requested."""
        Thread(
            target=self.server.serve_forever,
            kwargs={"poll_interval": POLL},
            name="steady-queue-probe",
            daemon=True,
        ).start()
        self.context.report(0)
        while not self.context.stopping:
            self.context.sleep(1.0)
        self.server.shutdown()
        self.server.await_answers(GRACE)
        self.server.server_close()
        self.context.journal.mark_clean_exit()

    def _livez(self, accept: str | None) -> Answer:
        # No database: else its outage would have every container restarted.
        beat = self.heartbeat.read()
        return Answer.of(_silence(beat), beat_age_s=round(beat.age, 3))

    def _readyz(self, accept: str | None) -> Answer:
        beat = self.heartbeat.read()
        problems = _silence(beat) or self.readiness.problems()
        return Answer.of(problems, processes=beat.in_place, wanted=beat.wanted)

    def _metricsz(self, metrics: Metrics, accept: str | None) -> Answer:
        # One at a time: each asks a dozen questions.
        if not self._scraping.acquire(timeout=PATIENCE):
            return Answer.of(["another scrape is under way"])
        try:
            with as_control_thread():  # Closes the connections of this thread, which ends now.
                return Answer(200, *metrics(accept))
        except PrometheusMissing as error:
            return Answer(501, f"{error}\n".encode(), "text/plain; charset=utf-8")
        finally:
            self._scraping.release()


def _silence(beat: Beat) -> list[str]:
    if beat.age <= MOST_SILENCE:
        return []
    return [f"the supervisor has been silent for {beat.age:.0f} s"]
