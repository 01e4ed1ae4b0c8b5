"""Rates: when the next jobs of a key with a rate limit may start."""

from __future__ import annotations

from typing import Any

from django.db import models

from ..dialects import tables
from .fields import ExactCharField


class Rate(models.Model):
    """The starts of a key. One without a row may start its whole burst.

    Times are microseconds since 1970, by the database's clock.
    """

    key = ExactCharField(max_length=255, primary_key=True)
    #: When the last start would be over, if they had come at their pace.
    gate = models.BigIntegerField()
    #: The next free slot of jobs in excess, and how much later than planned all slots come.
    line = models.BigIntegerField()
    shift = models.BigIntegerField()
    #: The rate of the job that has asked last: so many starts, in so many microseconds.
    limit = models.BigIntegerField()
    period = models.BigIntegerField()
    burst = models.BigIntegerField()

    class Meta:
        db_table = tables.RATES
        default_permissions = ("view",)
        verbose_name = "rate limit"

    def __str__(self) -> str:
        return f"{self.key}: {self.limit} in {number(self.period) / 1e6:g} s"


def number(stored: Any) -> int:
    """Return a number of a row; 0 for anything else, which SQLite lets a row hold."""
    return stored if type(stored) is int else 0
