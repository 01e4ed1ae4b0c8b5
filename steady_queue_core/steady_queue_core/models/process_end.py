"""ProcessEnd: how a process has ended that did not end by itself."""

from __future__ import annotations

import json

from django.db import models

from ..dialects import portable, tables
from ..dialects.database import Database
from ..printable import printable
from .fields import ExactCharField, ExactTextField, InstantField
from .process import Process

#: Most jobs of a process that are named.
MOST_JOBS = 20


class ProcessEnd(models.Model):
    """What is kept of a process that was killed, went silent or was replaced. Whoever takes its row
    away writes this one, in the same transaction; a process that ends by itself leaves none."""

    id = models.BigAutoField(primary_key=True)
    process_id = models.BigIntegerField()
    #: Unlike the id, no other process ever has it, even after a restore.
    name = ExactCharField(max_length=255, unique=True)
    kind = models.CharField(max_length=32)
    pid = models.PositiveIntegerField()
    hostname = models.CharField(max_length=255)
    supervisor_id = models.BigIntegerField(null=True)
    started_at = InstantField(null=True)
    #: ``None``: it was not known any more.
    last_heartbeat_at = InstantField(null=True)
    #: When its row was taken away, and its jobs were no longer its own.
    ended_at = InstantField()
    #: A word for why, see ``processes.supervisor.ends``.
    reason = models.CharField(max_length=32)
    #: How many claims were ended in its stead, and with how many of them an attempt was lost.
    held = models.PositiveIntegerField()
    lost = models.PositiveIntegerField()
    #: JSON object: its queues and version, what its supervisor saw, and what became of its jobs.
    details = ExactTextField(default="{}")

    class Meta:
        db_table = tables.PROCESS_ENDS
        verbose_name = "ended process"
        verbose_name_plural = "ended processes"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return printable(f"{self.name} (pid {self.pid} on {self.hostname})")

    def absorb(self, other: ProcessEnd) -> None:
        """Add the claims that another has ended of the same process."""
        mine, theirs = json.loads(self.details), json.loads(other.details)
        for ending, number in theirs["endings"].items():
            mine["endings"][ending] = mine["endings"].get(ending, 0) + number
        jobs = sorted(mine["jobs"] + theirs["jobs"], key=lambda job: not job["lost"])
        mine["jobs"] = jobs[:MOST_JOBS]
        self.held, self.lost = self.held + other.held, self.lost + other.lost
        self.details = json.dumps(mine)


def bury(using: str, end: ProcessEnd) -> bool:
    """Delete the row of a process and store its end, at once. Return ``False`` if another has taken
    the row away: then theirs is the end, to which the claims are added that we have ended."""
    database = Database.of(using)
    with database.transaction():
        rows = Process.objects.using(using).filter(pk=end.process_id, name=end.name)
        # Who deletes the row holds it until the end is stored, and no other one finds it.
        is_ours = bool(rows.delete()[0])
        if is_ours:
            end.ended_at = portable.storable(database.current_time())
            database.insert_if_absent(end, ["name"])
        elif end.held:
            known = ProcessEnd.objects.using(using).filter(name=end.name)
            for theirs in database.lock_rows(known, wait=True):
                theirs.absorb(end)
                theirs.save(update_fields=["held", "lost", "details"])
    return is_ours
