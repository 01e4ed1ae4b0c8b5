"""Which recurring tasks a scheduler is responsible for."""

from __future__ import annotations

from ..backend import own_backends
from ..recurring_task import RecurringTask, registered


def registered_on(using: str) -> list[RecurringTask]:
    """Return those whose jobs are stored in the database ``using``, by a backend of ours."""
    databases = {alias: backend.database for alias, backend in own_backends().items()}
    return [each for each in registered() if databases.get(each.task.backend) == using]
