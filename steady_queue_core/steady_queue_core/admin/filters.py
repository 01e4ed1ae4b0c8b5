"""Filters of lists: query parameters whose choices need no table scan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest

from ..dialects.database import Database
from ..listings.damage import readable
from ..models import Pause
from ..tasks.registry import registered_tasks
from . import databases
from .batch_list import KINDS, STATUSES
from .texts import name

#: Maximum number of choices of a filter.
MOST_CHOICES = 100
#: How long ago the time may begin that a list is limited to.
SINCE = {"1h": "The last hour", "24h": "The last day", "7d": "The last week"}


class Parameter(SimpleListFilter):
    """A query parameter that the listing reads, by default without choices."""

    title = ""
    clearable = True

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        given = request.GET.get(str(self.parameter_name))
        names = sorted({*self.names(request, model_admin), *([given] if given else [])})
        return [(each, name(each)) for each in names[:MOST_CHOICES]]

    def value(self) -> str | None:
        # A form also sends the fields that were left empty.
        given: str | None = super().value()
        return given or None

    def has_output(self) -> bool:
        return len(self.lookup_choices) > 1 or self.value() is not None

    def names(self, request: HttpRequest, page: Any) -> Iterable[str]:
        """Return the choices on a page of the admin."""
        return ()

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset


class StateFilter(Parameter):
    """The state of jobs, for which the list has tabs."""

    parameter_name = "state"
    clearable = False

    def has_output(self) -> bool:
        return False


class DatabaseFilter(Parameter):
    """The database, if several hold a queue."""

    title = "database"
    parameter_name = databases.PARAMETER
    clearable = False

    def names(self, request: HttpRequest, page: Any) -> Iterable[str]:
        return databases.queue_databases()

    def choices(self, changelist: Any) -> Any:
        # One database is always selected, so there is no "All".
        _, *each = super().choices(changelist)
        first = databases.queue_databases()[0]
        for choice, (alias, _) in zip(each, self.lookup_choices, strict=True):
            if self.value() is None and alias == first:
                choice["selected"] = True
            yield choice


class StatusFilter(Parameter):
    """How far batches have come."""

    title = "status"
    parameter_name = "status"

    def names(self, request: HttpRequest, page: Any) -> Iterable[str]:
        return [status.value for status in STATUSES]


class KindFilter(Parameter):
    """What batches were made as."""

    title = "kind"
    parameter_name = "kind"

    def names(self, request: HttpRequest, page: Any) -> Iterable[str]:
        return KINDS


class QueueFilter(Parameter):
    """The queue: queues with ready jobs, paused ones, and those of registered tasks. Users who may
    not see all jobs are offered only the latter, since other names would reveal hidden jobs; so is
    who searches arguments, which takes queries of its own."""

    title = "queue"
    parameter_name = "queue"

    def names(self, request: HttpRequest, page: Any) -> Iterable[str]:
        searches = bool(request.GET.get(ArgumentsFilter.parameter_name))
        if page.visible_jobs(request).is_unrestricted and not searches:
            return queue_names(databases.requested(request))
        return queues_of_tasks()


class TaskFilter(Parameter):
    """The task: those registered in this process."""

    title = "task"
    parameter_name = "task"

    def names(self, request: HttpRequest, page: Any) -> Iterable[str]:
        return {task.module_path for task in registered_tasks()}


class KeyFilter(Parameter):
    """The concurrency key, to which the list of semaphores links."""

    title = "concurrency key"
    parameter_name = "key"


class ErrorFilter(Parameter):
    """The error group of failed jobs, to which the page of error groups links."""

    title = "error group"
    parameter_name = "error"


class SinceFilter(Parameter):
    """The beginning of the time in which jobs have ended or, in other states, were enqueued."""

    parameter_name = "since"
    #: What is in that time, by the name of the state: no others heed it.
    titles: ClassVar = {
        "": "time of enqueue", "failed": "time of failure", "finished": "time of end"
    }  # fmt: skip

    def __init__(self, request: HttpRequest, *arguments: Any) -> None:
        self.title = self.titles.get(request.GET.get("state", ""), "")
        super().__init__(request, *arguments)

    def has_output(self) -> bool:
        return bool(self.title and self.lookup_choices)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        given = request.GET.get(self.parameter_name)
        other = [] if not given or given in SINCE else [(given, f"Since {name(given)}")]
        return [*SINCE.items(), *other]


class UntilFilter(SinceFilter):
    """The end of that time, in the address."""

    parameter_name = "until"
    titles: ClassVar = {
        "": "enqueued before", "failed": "failed before", "finished": "ended before"
    }  # fmt: skip

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        given = request.GET.get(self.parameter_name)
        return [(given, name(given))] if given else []


class ArgumentsFilter(Parameter):
    """A text in the arguments, which has a field of its own beside that of the search."""

    parameter_name = "arguments"

    def has_output(self) -> bool:
        return False


def queue_names(using: str) -> set[str]:
    """Return the queues that have ready jobs, are paused, or belong to a registered task."""
    paused = Pause.objects.using(using).values_list("queue_name", flat=True)
    sources: tuple[Callable[[], Iterable[str]], ...] = (
        Database.of(using).list_queues,
        lambda: paused,
    )
    return queues_of_tasks().union(*map(readable, sources))


def queues_of_tasks() -> set[str]:
    """Return the queues of the tasks registered in this process."""
    return {task.queue_name for task in registered_tasks()}
