"""Whether the queue can do its work: its processes, its database, and the tables there."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from time import monotonic

from django.db.backends.base.base import BaseDatabaseWrapper

from ...dialects import Dialect
from ...errors import SteadyQueueError
from ...models.process import Process
from ...models.readiness import pending_migrations
from ..base.connection_setup import as_control_thread
from ..base.context import ProcessContext
from ..base.database import QueueDatabase, Unavailable
from ..base.response_timeout import ResponseTimeouts
from ..base.shared_heartbeat import SharedHeartbeat

#: Seconds for which an answer of the database holds: requests may come as often as they like.
LASTING = 1.0
#: Seconds that a request waits for another one's question to the database.
PATIENCE = 2.0


class Readiness:
    """Asks for the state of the queue. Any thread may ask."""

    def __init__(
        self, context: ProcessContext, heartbeat: SharedHeartbeat, databases: Sequence[str]
    ) -> None:
        self.heartbeat = heartbeat
        options = context.options
        self._databases = [
            QueueDatabase(using, quiet=options.silence_polling, timeouts=ResponseTimeouts(options))
            for using in databases
        ]
        self._lock = Lock()
        self._asked_at = -LASTING
        self._answer: list[str] = []
        #: Databases whose migrations were all seen to be applied: they stay so.
        self._migrated: set[str] = set()

    def problems(self) -> list[str]:
        """Return what keeps the queue from its work."""
        beat = self.heartbeat.read()
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
        with as_control_thread():  # Closes the connections of this thread, which ends now.
            return [problem for each in self._databases for problem in self._ask_one(each)]

    def _ask_one(self, database: QueueDatabase) -> list[str]:
        # Of several, it has to be said which.
        which = f" {database.using!r}" if len(self._databases) > 1 else ""
        try:
            return database.run(self._look)
        except Unavailable as unavailable:
            reason = unavailable.__cause__ or unavailable
            return [f"the database{which} is not available: {reason}"]
        except SteadyQueueError as error:
            return [str(error)]

    def _look(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> list[str]:
        if connection.alias not in self._migrated:
            if pending := pending_migrations(connection):
                which = f" to {connection.alias!r}" if len(self._databases) > 1 else ""
                return [f"migrations are not applied{which}: {', '.join(pending)}"]
            self._migrated.add(connection.alias)
        Process.objects.using(connection.alias).exists()
        return []
