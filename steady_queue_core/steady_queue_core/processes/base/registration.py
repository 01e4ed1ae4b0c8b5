"""A process's row among the processes, and the lease that its heartbeats renew."""

from __future__ import annotations

import json
import os
import secrets
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

from ...dialects import ProcessIdentity
from ...models import process as processes
from . import system as host
from .database import QueueDatabase
from .identity import ProcessLocation

#: The part of its lease before whose end a worker stops taking jobs.
LEASE_MARGIN = 0.1


def new_name(kind: str) -> str:
    """Return a name that no other process has."""
    return f"{kind}-{secrets.token_hex(10)}"


class ProcessRegistration:
    """Registers a process, says regularly that it is alive, and knows how long that holds."""

    def __init__(
        self,
        database: QueueDatabase,
        *,
        kind: str,
        name: str,
        supervisor_id: int | None,
        interval: timedelta,
        threshold: timedelta,
        metadata: dict[str, Any],
        journal: Path | None = None,
    ) -> None:
        self.database = database
        self.kind, self.name = kind, name
        #: By what the database knows us; the id is 0 until we are registered.
        self.identity = ProcessIdentity(0, name)
        self._supervisor_id = supervisor_id
        self._interval = interval.total_seconds()
        self._threshold = threshold.total_seconds()
        self._metadata, self._journal = metadata, journal
        self._next_beat = 0.0
        self._lease_end = 0.0

    def register(self) -> int:
        """Insert the row; return the process id. Raises ``Unavailable``."""
        began = host.lease_clock()
        self.identity = self.database.run(
            lambda connection, dialect: processes.register(
                connection.alias,
                kind=self.kind,
                name=self.name,
                pid=os.getpid(),
                hostname=socket.gethostname(),
                supervisor_id=self._supervisor_id,
                metadata=self._as_json(self._metadata),
            )
        )
        self._renew(began)
        return self.process_id

    def tell(self, metadata: dict[str, Any]) -> None:
        """Write what the process does now, if that has changed. Raises ``Unavailable``."""
        if metadata != self._metadata:
            text = self._as_json(metadata)
            self.database.run(
                lambda connection, _: processes.save_metadata(connection.alias, self.identity, text)
            )
            self._metadata = metadata

    def beat_if_due(self) -> bool:
        """Write a heartbeat if it is time; ``False``: we were declared dead. Raises
        ``Unavailable``."""
        began = host.lease_clock()
        if began < self._next_beat:
            return True
        alive = self.database.run(
            lambda connection, _: processes.beat(connection.alias, self.identity)
        )
        if alive:
            self._renew(began)
        return alive

    @property
    def process_id(self) -> int:
        """The id of our row."""
        return self.identity.id

    @property
    def until_beat(self) -> float:
        """Seconds until the next heartbeat is due."""
        return max(0.0, self._next_beat - host.lease_clock())

    @property
    def holds_lease(self) -> bool:
        """Whether nobody can have declared us dead yet."""
        return host.lease_clock() < self._lease_end

    def deregister(self) -> None:
        """Delete the row. Raises ``Unavailable``."""
        self.database.run(lambda connection, _: processes.deregister(connection.alias, self.name))

    def _as_json(self, metadata: dict[str, Any]) -> str:
        return json.dumps(metadata | ProcessLocation.here(self._journal).as_metadata())

    def _renew(self, began: float) -> None:
        # Counted from before the statement was sent: the database's instant is later.
        self._next_beat = began + self._interval
        self._lease_end = began + self._threshold * (1 - LEASE_MARGIN)
