from __future__ import annotations

from django.db import models


class Note(models.Model):
    """A row that a web request, or a task in a transaction of its own, writes."""

    text = models.CharField(max_length=200)

    class Meta:
        app_label = "faultapp"

    def __str__(self) -> str:
        return self.text
