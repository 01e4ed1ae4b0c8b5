from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models


class Customer(AbstractUser):
    """The project's own user model."""

    nickname = models.CharField(max_length=50, blank=True)


class Order(models.Model):
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE)
    confirmed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"order {self.pk}"
