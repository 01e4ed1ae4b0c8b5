from __future__ import annotations

from typing import Any

from django.db import models

from .switch import trip


class Instance(models.Model):
    """An argument that cannot be fetched."""

    class Meta:
        app_label = "faults"

    def __str__(self) -> str:
        return "an instance"

    @classmethod
    def from_db(cls, *args: Any) -> Any:
        trip("schedule: instance among the arguments")
        return super().from_db(*args)
