from __future__ import annotations

from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver

from .models import Order
from .tasks import confirm


@receiver(post_save, sender=Order)
def confirm_new_orders(instance: Order, created: bool, **kwargs: Any) -> None:
    if created:
        confirm.enqueue(instance.pk)
