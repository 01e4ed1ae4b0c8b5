"""Overview: what the admin lists its page about the whole queue under."""

from __future__ import annotations

from .statistic import Statistic


class Overview(Statistic):
    """Has no rows of its own, but a permission and a place in the admin's index."""

    class Meta:
        proxy = True
        verbose_name = verbose_name_plural = "overview"
        default_permissions = ("view",)
