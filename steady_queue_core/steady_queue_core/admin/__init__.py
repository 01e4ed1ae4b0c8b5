"""The pages of Django's admin for those who look after the queue.

Nobody imports this but Django's admin, where it is installed; then everything is on its default
site. For a site of one's own: ``register(site)``.
"""

from __future__ import annotations

from django.contrib.admin import AdminSite
from django.contrib.admin import site as default_site

from ..models import Job, Pause, Process, RecurringTask, Semaphore
from .jobs import JobAdmin
from .processes import ProcessAdmin
from .queues import QueuesAdmin
from .recurring_tasks import RecurringTaskAdmin
from .semaphores import SemaphoreAdmin

__all__ = [
    "JobAdmin",
    "ProcessAdmin",
    "QueuesAdmin",
    "RecurringTaskAdmin",
    "SemaphoreAdmin",
    "register",
]

PAGES = {
    Job: JobAdmin,
    Pause: QueuesAdmin,
    Process: ProcessAdmin,
    RecurringTask: RecurringTaskAdmin,
    Semaphore: SemaphoreAdmin,
}


def register(site: AdminSite) -> None:
    """Add the pages to an admin site."""
    for model, page in PAGES.items():
        site.register(model, page)


register(default_site)
