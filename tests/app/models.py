from __future__ import annotations

from uuid import uuid4

from django.db import models


class Item(models.Model):
    """A row for tasks to take as an argument and to change."""

    name = models.CharField(max_length=100)
    count = models.IntegerField(default=0)

    class Meta:
        app_label = "testapp"

    def __str__(self) -> str:
        return self.name


class Parcel(models.Model):
    """A row whose primary key is known before it is saved."""

    id = models.UUIDField(primary_key=True, default=uuid4)

    class Meta:
        app_label = "testapp"

    def __str__(self) -> str:
        return str(self.id)


class NamedItem(Item):
    class Meta:
        proxy = True
