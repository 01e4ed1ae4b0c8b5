"""Process: a running supervisor, worker, dispatcher or scheduler."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import models

from ..dialects import ProcessIdentity, portable, tables
from .base import Record, queue_database
from .fields import ExactCharField, ExactTextField, InstantField

#: The last heartbeat of a process that was declared dead: it can give no other.
NEVER_AGAIN = datetime(1970, 1, 1, tzinfo=UTC)


class Process(Record):
    """A process that is, or was, alive. It holds the claims of the jobs that it runs."""

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=32)
    name = ExactCharField(max_length=255, unique=True)
    pid = models.PositiveIntegerField()
    hostname = models.CharField(max_length=255)
    supervisor_id = models.BigIntegerField(null=True)
    #: JSON object: what the process serves, and where it can be found.
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
        """Its id and its name."""
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
    """Insert the row of a process that begins; return by what it is known from then on."""
    connection, dialect = queue_database(using)
    with dialect.transaction(connection):
        present = portable.storable(dialect.current_time(connection))
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


def beat(using: str, process: ProcessIdentity) -> bool:
    """Write that a process is alive; ``False``: it was declared dead, its row may be gone, and its
    id be that of another process."""
    connection, dialect = queue_database(using)
    with dialect.transaction(connection):
        rows = _row(using, process).filter(last_heartbeat_at__gt=portable.storable(NEVER_AGAIN))
        return bool(rows.update(last_heartbeat_at=dialect.now(connection)))


def tell(using: str, process: ProcessIdentity, metadata: str) -> None:
    """Write what a process serves now."""
    connection, dialect = queue_database(using)
    with dialect.transaction(connection):
        _row(using, process).update(metadata=metadata)


def declare_dead(using: str, process: ProcessIdentity, threshold: timedelta) -> bool:
    """End the lease of a process for good; ``False``: it has given a heartbeat after all.

    From then on its claims may be ended: it can neither renew its lease nor claim anything.
    """
    connection, dialect = queue_database(using)
    with dialect.transaction(connection):
        limit = dialect.current_time(connection) - threshold
        rows = _row(using, process).filter(last_heartbeat_at__lt=portable.storable(limit))
        return bool(rows.update(last_heartbeat_at=portable.storable(NEVER_AGAIN)))


def deregister(using: str, name: str) -> None:
    """Delete the row of a process, if it is there."""
    connection, dialect = queue_database(using)
    with dialect.transaction(connection):
        Process.objects.using(using).filter(name=name).delete()


def expired(using: str, threshold: timedelta) -> list[Process]:
    """Return the processes whose last heartbeat is older than ``threshold``."""
    connection, dialect = queue_database(using)
    limit = dialect.current_time(connection) - threshold
    return list(_identified(using).filter(last_heartbeat_at__lt=portable.storable(limit)))


def registered(using: str) -> list[Process]:
    """Return all processes."""
    return list(_identified(using))


def named(using: str, name: str) -> Process | None:
    """Return the process with this name, if it is registered."""
    return _identified(using).filter(name=name).first()


def _row(using: str, process: ProcessIdentity) -> models.QuerySet[Process]:
    return Process.objects.using(using).filter(pk=process.id, name=process.name)


def _identified(using: str) -> models.QuerySet[Process]:
    # Without the instants: one that somebody has damaged would hide all other rows.
    instants = ("created_at", "last_heartbeat_at")
    return Process.objects.using(using).defer(*instants).order_by("pk")
