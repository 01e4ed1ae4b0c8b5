"""Whether the queue can do its work: its processes, its database, and the tables there."""

from __future__ import annotations

from threading import Lock
from time import monotonic

from django.db.backends.base.base import BaseDatabaseWrapper

from ...dialects import Dialect
from ...errors import SteadyQueueError
from ...models.process import Process
from ...models.readiness import pending_migrations
from ..base.connection_setup import as_control_thread
from ..base.context import ProcessContext
from ..base.database import Unavailable
from ..base.pulse import Pulse

#: Seconds for which an answer of the database holds: requests may come as often as they like.
LASTING = 1.0
#: Seconds that a request waits for another one's question to the database.
PATIENCE = 2.0


class Readiness:
    """Asks for the state of the queue. Any thread may ask."""

    def __init__(self, context: ProcessContext, pulse: Pulse) -> None:
        self.context, self.pulse = context, pulse
        self._lock = Lock()
        self._asked_at = -LASTING
        self._answer: list[str] = []
        #: Whether all migrations were seen to be applied: they stay so.
        self._is_migrated = False

    def problems(self) -> list[str]:
        """Return what keeps the queue from its work."""
        beat = self.pulse.read()
        if beat.is_stopping:
            return ["the queue is stopping"]
        found = []
        if beat.in_place < beat.wanted:
            found.append(f"{beat.in_place} of {beat.wanted} processes are at work")
        return found + self._of_database()

    def _of_database(self) -> list[str]:
        if not self._lock.acquire(timeout=PATIENCE):
            return ["the database has not answered yet"]
        try:
            if monotonic() - self._asked_at >= LASTING:
                self._answer = self._ask()
                self._asked_at = monotonic()
            return self._answer
        finally:
            self._lock.release()

    def _ask(self) -> list[str]:
        try:
            with as_control_thread():  # Closes the connection of this thread, which ends now.
                return self.context.database.run(self._look)
        except Unavailable as unavailable:
            return [f"the database is not available: {unavailable.__cause__ or unavailable}"]
        except SteadyQueueError as error:
            return [str(error)]

    def _look(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> list[str]:
        if not self._is_migrated:
            if pending := pending_migrations(connection):
                return [f"migrations are not applied: {', '.join(pending)}"]
            self._is_migrated = True
        Process.objects.using(connection.alias).exists()
        return []
