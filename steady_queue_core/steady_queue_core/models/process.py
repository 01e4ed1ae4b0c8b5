"""Process: a running supervisor, worker, dispatcher or scheduler."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any

from django.db import DataError, models

from ..dialects import ProcessIdentity, portable, tables
from ..dialects.database import Database
from .base import Record
from .fields import ExactCharField, ExactTextField, InstantField

#: The last heartbeat of a process that was declared dead, which can never send another.
NEVER_AGAIN = datetime(1970, 1, 1, tzinfo=UTC)


class Process(Record):
    """A process that is or was running. It holds the claims of the jobs that it runs."""

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=32)
    name = ExactCharField(max_length=255, unique=True)
    pid = models.PositiveIntegerField()
    hostname = models.CharField(max_length=255)
    supervisor_id = models.BigIntegerField(null=True)
    #: JSON object: the process's configuration and location.
    metadata = ExactTextField(default="{}")
    last_heartbeat_at = InstantField()

    class Meta:
        db_table = tables.PROCESSES
        verbose_name_plural = "processes"
        default_permissions = ("view",)
        indexes = (models.Index(fields=["last_heartbeat_at"], name="steady_queue_heartbeat"),)

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid} on {self.hostname})"

    @property
    def identity(self) -> ProcessIdentity:
        """The id and name that identify the process."""
        return ProcessIdentity(self.pk, self.name)


def register(
    using: str,
    *,
    kind: str,
    name: str,
    pid: int,
    hostname: str,
    supervisor_id: int | None,
    metadata: str,
) -> ProcessIdentity:
    """Insert the row of a starting process; return its identity."""
    database = Database.of(using)
    with database.transaction():
        present = database.storable_time()
        process = Process.objects.using(using).create(
            kind=kind,
            name=name,
            pid=pid,
            hostname=hostname[:255],
            supervisor_id=supervisor_id,
            metadata=metadata,
            created_at=present,
            last_heartbeat_at=present,
        )
    return process.identity


class Beat(Enum):
    """What became of a heartbeat."""

    RECORDED = auto()
    #: The process was declared dead: its row may be gone, and its id belong to another one.
    REFUSED = auto()
    #: Somebody else keeps the row locked; that is not waited for.
    HELD_UP = auto()


def beat(using: str, process: ProcessIdentity) -> Beat:
    """Record a heartbeat."""
    database = Database.of(using)
    with database.transaction():
        rows = _row(using, process).filter(last_heartbeat_at__gt=portable.storable(NEVER_AGAIN))
        if list(database.lock_rows(rows.only("pk"), wait=False)):
            rows.update(last_heartbeat_at=database.now())
            return Beat.RECORDED
    return Beat.HELD_UP if rows.exists() else Beat.REFUSED


def save_metadata(using: str, process: ProcessIdentity, metadata: str) -> None:
    """Update the metadata of a process."""
    with Database.of(using).transaction():
        _row(using, process).update(metadata=metadata)


def declare_dead(using: str, process: ProcessIdentity, limit: datetime) -> bool:
    """End the lease of a process for good. Return ``False`` if it has sent a heartbeat since
    ``limit`` after all.

    From then on its claims may be ended, for it can neither renew its lease nor claim anything.
    """
    with Database.of(using).transaction():
        rows = _row(using, process).filter(last_heartbeat_at__lt=portable.storable(limit))
        return bool(rows.update(last_heartbeat_at=portable.storable(NEVER_AGAIN)))


def deregister(using: str, name: str) -> None:
    """Delete the row of a process, if it exists."""
    with Database.of(using).transaction():
        Process.objects.using(using).filter(name=name).delete()


def expired(using: str, limit: datetime) -> list[Process]:
    """Return the processes whose last heartbeat was before ``limit``."""
    return list(_identified(using).filter(last_heartbeat_at__lt=portable.storable(limit)))


def signs_of_life(using: str, process_id: int) -> tuple[Any, Any]:
    """Return when a process was registered, and its last heartbeat, as they are stored; ``None``
    where that cannot be read."""
    rows = Process.objects.using(using).filter(pk=process_id)
    try:
        born, last = rows.values_list("created_at", "last_heartbeat_at").get()
        is_alive = last is not None and portable.aware(last) > NEVER_AGAIN
    except (Process.DoesNotExist, DataError, ValueError, TypeError, AttributeError):
        return None, None
    return born, last if is_alive else None


def registered(using: str) -> list[Process]:
    """Return all processes."""
    return list(_identified(using))


def named(using: str, name: str) -> Process | None:
    """Return the process with this name, if it is registered."""
    return _identified(using).filter(name=name).first()


def _row(using: str, process: ProcessIdentity) -> models.QuerySet[Process]:
    return Process.objects.using(using).filter(pk=process.id, name=process.name)


def _identified(using: str) -> models.QuerySet[Process]:
    # Without the timestamps: one that was damaged by hand would hide all other rows.
    instants = ("created_at", "last_heartbeat_at")
    return Process.objects.using(using).defer(*instants).order_by("pk")
