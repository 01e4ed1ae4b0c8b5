"""Pages of Django's admin for operating the queue.

Django's admin discovers this package, which registers its pages on the default site. Call
``register(site)`` for a custom site.
"""

from __future__ import annotations

from django.contrib.admin import AdminSite
from django.contrib.admin import site as default_site

from ..models import (
    Job,
    JobBatch,
    Overview,
    Pause,
    Process,
    ProcessEnd,
    Rate,
    RecurringTask,
    Semaphore,
    Share,
)
from .batches import BatchAdmin
from .jobs import JobAdmin
from .limits import RateAdmin, SemaphoreAdmin
from .overview import OverviewAdmin
from .processes import ProcessAdmin, ProcessEndAdmin
from .queues import QueuesAdmin
from .recurring_tasks import RecurringTaskAdmin
from .shares import ShareAdmin

__all__ = [
    "BatchAdmin",
    "JobAdmin",
    "OverviewAdmin",
    "ProcessAdmin",
    "ProcessEndAdmin",
    "QueuesAdmin",
    "RateAdmin",
    "RecurringTaskAdmin",
    "SemaphoreAdmin",
    "ShareAdmin",
    "register",
]

PAGES = {
    Job: JobAdmin,
    JobBatch: BatchAdmin,
    Overview: OverviewAdmin,
    Pause: QueuesAdmin,
    Process: ProcessAdmin,
    ProcessEnd: ProcessEndAdmin,
    Rate: RateAdmin,
    RecurringTask: RecurringTaskAdmin,
    Semaphore: SemaphoreAdmin,
    Share: ShareAdmin,
}


def register(site: AdminSite) -> None:
    """Register the pages on an admin site."""
    for model, page in PAGES.items():
        site.register(model, page)


register(default_site)
