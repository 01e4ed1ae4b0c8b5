"""The queues that a database or the project knows: a name that neither knows may be misspelt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from ..configuration import Configuration
from ..configuration.errors import suggest
from ..configured_backends import backends_on
from ..listings.damage import readable
from ..listings.processes import listed_processes
from ..listings.queues import listed_queues
from ..models import RecurringTask
from ..processes.supervisor.launch import import_tasks
from ..tasks.registry import registered_tasks


class KnownQueues:
    """The queues of a database: those with jobs that have not finished, paused ones, and those
    that live workers, recurring tasks, the settings or the project's tasks name."""

    def __init__(self, using: str) -> None:
        processes = listed_processes(using)
        recurring = RecurringTask.objects.using(using).values_list("queue_name", flat=True)
        self.names = {each.name for each in listed_queues(using, processes)}
        self.names.update(filter(None, readable(lambda: recurring)))
        for backend in backends_on(using).values():
            self.names.update(backend.queues)
        self.names.update(_of_project())
        entries = [entry for each in processes if each.is_live for entry in each.queues]
        self._prefixes = tuple(_prefixes([*entries, *self.names]))

    def __contains__(self, name: str) -> bool:
        return name in self.names or name.startswith(self._prefixes)

    def suggestion(self, name: str) -> str:
        """Return the nearest known name, or all, as the end of a sentence."""
        return suggest(name, (each for each in self.names if each[:1] != "!" and each[-1:] != "*"))


def _of_project() -> Iterator[str]:
    """Yield what the settings and the tasks name, as far as these can be read: something may be
    wrong with the project when a queue has to be paused."""
    with suppress(Exception):
        options = Configuration.load()
        for worker in options.workers:
            yield from worker.queues
        import_tasks(options)
    yield from (task.queue_name for task in registered_tasks())


def _prefixes(entries: Iterable[str]) -> Iterator[str]:
    """Yield the prefixes that workers serve; not that of all queues."""
    return (each[:-1] for each in entries if each[:1] != "!" and each[-1:] == "*" and each != "*")
