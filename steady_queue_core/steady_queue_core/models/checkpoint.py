"""Checkpoint: what the attempts of a job have stored for the next one, and how far they came."""

from __future__ import annotations

from django.db import models

from ..dialects import portable, tables
from ..progress import LONGEST_TEXT, Progress
from ..timezones import from_utc
from .fields import ExactCharField, ExactTextField, InstantField


class Checkpoint(models.Model):
    """The checkpoint and the progress of a job whose task stores any; it goes with its job."""

    job = models.OneToOneField(
        "steady_queue.Job",
        primary_key=True,
        on_delete=models.CASCADE,
        db_constraint=False,
        related_name="checkpoint",
    )
    #: The token of the claim that has written the row last.
    token = models.BigIntegerField()
    #: The encoded checkpoint; ``None``: there is none, or the job has succeeded.
    data = ExactTextField(null=True)
    #: The progress; ``done`` is ``None`` if the task has told none.
    done = models.FloatField(null=True)
    total = models.FloatField(null=True)
    text = ExactCharField(max_length=LONGEST_TEXT, default="")
    updated_at = InstantField()

    class Meta:
        db_table = tables.CHECKPOINTS
        default_permissions = ()

    def __str__(self) -> str:
        return f"#{self.pk}: {self.progress or 'no progress'}"

    @property
    def progress(self) -> Progress | None:
        """What the task has told of its progress; ``None`` if that is nothing, or damaged."""
        updated_at = self.updated_at and from_utc(portable.aware(self.updated_at))
        return Progress.read(self.done, self.total, self.text, updated_at)
