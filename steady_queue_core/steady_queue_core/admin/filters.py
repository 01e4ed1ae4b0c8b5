"""Filters of lists: parameters of the address, with choices that cost no scan of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest

from ..dialects.database import Database
from ..models import Pause
from ..tasks.definition import registered_tasks
from . import databases
from .corrupt_rows import readable
from .texts import name

#: Choices that a filter offers at most.
MOST_CHOICES = 100


class Parameter(SimpleListFilter):
    """A part of the address that the listing reads; it offers no choices of its own."""

    title = ""
    clearable = True

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        given = request.GET.get(str(self.parameter_name))
        names = sorted({*self.names(request, model_admin), *([given] if given else [])})
        return [(each, name(each)) for each in names[:MOST_CHOICES]]

    def has_output(self) -> bool:
        return len(self.lookup_choices) > 1 or self.value() is not None

    def names(self, request: HttpRequest, page: Any) -> Iterable[str]:
        """Return what can be chosen on a page of the admin."""
        return ()

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset


class StateFilter(Parameter):
    """The state of jobs; the list has tabs for it."""

    parameter_name = "state"
    clearable = False

    def has_output(self) -> bool:
        return False


class DatabaseFilter(Parameter):
    """The database, where several hold a queue."""

    title = "database"
    parameter_name = databases.PARAMETER
    clearable = False

    def names(self, request: HttpRequest, page: Any) -> Iterable[str]:
        return databases.queue_databases()

    def choices(self, changelist: Any) -> Any:
        # One of them is always chosen: "all" would not be true.
        _, *each = super().choices(changelist)
        first = databases.queue_databases()[0]
        for choice, (alias, _) in zip(each, self.lookup_choices, strict=True):
            if self.value() is None and alias == first:
                choice["selected"] = True
            yield choice


class QueueFilter(Parameter):
    """The queue: those that have ready jobs, are paused, or that a task names. Where not all jobs
    may be seen, only those that a task names: the others' names are of others' jobs."""

    title = "queue"
    parameter_name = "queue"

    def names(self, request: HttpRequest, page: Any) -> Iterable[str]:
        if page.scope(request).is_whole:
            return queue_names(databases.chosen(request))
        return queues_of_tasks()


class TaskFilter(Parameter):
    """The task: those that this process knows."""

    title = "task"
    parameter_name = "task"

    def names(self, request: HttpRequest, page: Any) -> Iterable[str]:
        return {task.module_path for task in registered_tasks()}


class KeyFilter(Parameter):
    """The concurrency key; semaphores link to it."""

    title = "concurrency key"
    parameter_name = "key"


def queue_names(using: str) -> set[str]:
    """Return the queues that have ready jobs, are paused, or that a task of this process names."""
    paused = Pause.objects.using(using).values_list("queue_name", flat=True)
    sources: tuple[Callable[[], Iterable[str]], ...] = (
        Database.of(using).list_queues,
        lambda: paused,
    )
    return queues_of_tasks().union(*map(readable, sources))


def queues_of_tasks() -> set[str]:
    """Return the queues that a task of this process names."""
    return {task.queue_name for task in registered_tasks()}
