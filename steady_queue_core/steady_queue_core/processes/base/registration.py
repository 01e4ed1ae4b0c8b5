"""A process's row in the table of processes, its heartbeat, and the lease that this renews."""

from __future__ import annotations

import json
import os
import secrets
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from ... import __version__
from ...dialects import ProcessIdentity
from ...models import process as processes
from ...models.process import Beat, Process
from . import system
from .database import QueueDatabase
from .events import Events

#: The last part of its lease, in which a worker no longer starts jobs.
LEASE_MARGIN = 0.1
#: Most seconds until a heartbeat is sent again whose row somebody else keeps locked.
HELD_UP_PAUSE = 1.0


def new_name(kind: str) -> str:
    """Return a unique name for a process."""
    return f"{kind}-{secrets.token_hex(10)}"


class ProcessLocation(NamedTuple):
    """Where a registered process runs, from its row's metadata: enough to see from outside
    whether it is alive, and to find its run journal."""

    #: See ``system.host_id``.
    host: str | None
    #: See ``system.start_time``.
    birth: str | None
    #: The file of its run journal, if it has one.
    journal: Path | None

    @classmethod
    def here(cls, journal: Path | None) -> ProcessLocation:
        """Return the location of the calling process."""
        return cls(system.host_id(), system.start_time(os.getpid()), journal)

    @classmethod
    def of(cls, process: Process) -> ProcessLocation:
        """Return the location of a registered process; unknown if its row is damaged."""
        try:
            known = json.loads(process.metadata)
        except (ValueError, TypeError, RecursionError):
            known = None
        known = known if isinstance(known, dict) else {}
        texts = {name: known.get(name) for name in cls._fields}
        found = {name: text if isinstance(text, str) else None for name, text in texts.items()}
        journal = found["journal"]
        return cls(found["host"], found["birth"], Path(journal) if journal else None)

    def as_metadata(self) -> dict[str, str | None]:
        """Return the location in its stored form."""
        return {**self._asdict(), "journal": str(self.journal) if self.journal else None}

    def is_dead(self, pid: int) -> bool:
        """Whether the process with this pid has certainly ended, and on this host."""
        known = self.host is not None and self.birth is not None and type(pid) is int
        return known and self.host == system.host_id() and system.has_ended(pid, self.birth)


class ProcessRegistration:
    """Registers a process, sends its heartbeats, and knows until when its lease holds."""

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
        #: Our identity in the database; the id is 0 before we are registered.
        self.identity = ProcessIdentity(0, name)
        self._supervisor_id = supervisor_id
        self._interval = interval.total_seconds()
        self._threshold = threshold.total_seconds()
        self._metadata, self._journal = metadata, journal
        self._events = Events(kind, name, database.using)
        self._next_beat = 0.0
        self._lease_end = 0.0

    def register(self) -> int:
        """Insert the row; return the process id. Raises ``Unavailable``."""
        began = system.lease_clock()
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

    def resume(self, process_id: int) -> None:
        """Go on with the row that the former code in this process has registered."""
        self.identity = ProcessIdentity(process_id, self.name)

    def save_metadata(self, metadata: dict[str, Any]) -> None:
        """Store the metadata if they have changed. Raises ``Unavailable``."""
        if metadata != self._metadata:
            text = self._as_json(metadata)
            self.database.run(
                lambda connection, _: processes.save_metadata(connection.alias, self.identity, text)
            )
            self._metadata = metadata

    def beat_if_due(self) -> bool:
        """Send a heartbeat if one is due; return ``False`` if we were declared dead. Raises
        ``Unavailable``."""
        return system.lease_clock() < self._next_beat or self.beat()

    def beat(self) -> bool:
        """Send a heartbeat; return ``False`` if we were declared dead. While somebody keeps our row
        locked, which nobody else can change then, it is tried again. Raises ``Unavailable``."""
        began = system.lease_clock()
        beat = self.database.run(
            lambda connection, _: processes.beat(connection.alias, self.identity)
        )
        if beat is Beat.RECORDED:
            self._renew(began)
            self._events.beat()
        elif beat is Beat.HELD_UP:
            self._next_beat = began + min(self._interval, HELD_UP_PAUSE)
        return beat is not Beat.REFUSED

    @property
    def process_id(self) -> int:
        """The id of our row."""
        return self.identity.id

    @property
    def until_beat(self) -> float:
        """Seconds until the next heartbeat is due."""
        return max(0.0, self._next_beat - system.lease_clock())

    @property
    def holds_lease(self) -> bool:
        """Whether it is too early for anybody to have declared us dead."""
        return system.lease_clock() < self._lease_end

    def deregister(self) -> None:
        """Delete the row. Raises ``Unavailable``."""
        self.database.run(lambda connection, _: processes.deregister(connection.alias, self.name))

    def _as_json(self, metadata: dict[str, Any]) -> str:
        location = ProcessLocation.here(self._journal).as_metadata()
        return json.dumps(metadata | {"version": __version__} | location)

    def _renew(self, began: float) -> None:
        # From before the statement was sent, since the database's own instant is later.
        self._next_beat = began + self._interval
        self._lease_end = began + self._threshold * (1 - LEASE_MARGIN)
