"""The registered processes: which of them live, what they serve, and who has started whom."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Protocol

from django.core.exceptions import ImproperlyConfigured
from django.db.models import Count

from ..configuration import ConfigurationError
from ..configured_backends import options_on
from ..dialects import QueueSelector, portable
from ..dialects.database import Database
from ..models import ClaimedExecution, Process
from ..models.process import NEVER_AGAIN
from .damage import read_in_order, suppress_damage

DEFAULT_THRESHOLD = timedelta(minutes=5)
#: Most processes that are listed, entries of the queue list of one, and characters of what one
#: tells of itself.
MOST, MOST_ENTRIES, MOST_METADATA = 2_000, 1_000, 2**20
LIVE, STALE, DEAD = "live", "stale", "declared dead"


class QueueList:
    """The queue list of one worker, prepared for many questions."""

    def __init__(self, entries: Iterable[str]) -> None:
        selector = QueueSelector.of(list(entries))
        self._takes_all = selector.takes_all
        self._names = frozenset(selector.patterns)
        self._prefixes = _prefixes(selector.patterns)
        self._left_out = frozenset(selector.excluded)
        self._left_out_prefixes = _prefixes(selector.excluded)

    def takes(self, queue: str) -> bool:
        """Whether jobs of a queue are taken."""
        if queue in self._left_out or queue.startswith(self._left_out_prefixes):
            return False
        return self._takes_all or queue in self._names or queue.startswith(self._prefixes)


class Serving(Protocol):
    """A process that may serve queues."""

    @property
    def serves_any(self) -> bool: ...

    @property
    def queues(self) -> list[str]: ...


class LiveWorkers:
    """The live workers by their queue lists, of which many have the same."""

    def __init__(self, processes: Iterable[Serving]) -> None:
        lists = Counter(tuple(each.queues) for each in processes if each.serves_any)
        self._lists = [(QueueList(entries), number) for entries, number in lists.items()]

    def of(self, queue: str) -> int:
        """Return how many of them serve a queue."""
        return sum(number for found, number in self._lists if found.takes(queue))


def _prefixes(entries: Iterable[str]) -> tuple[str, ...]:
    return tuple(each[:-1] for each in entries if each.endswith("*"))


class ListedProcess:
    """A registered process, as it is at one moment."""

    def __init__(self, row: Process, present: datetime, threshold: timedelta, running: int) -> None:
        self.row, self.running = row, running
        self.pk, self.supervisor_id = row.pk, row.supervisor_id
        self.known = metadata_of(row)
        self.nested = False
        self.silence, self.state = _life(row, present, threshold)
        #: How far its last heartbeat lies in the future; ``None``: it lies in the past.
        self.ahead = _ahead(row, present)

    @property
    def is_live(self) -> bool:
        return self.state == LIVE

    @cached_property
    def queues(self) -> list[str]:
        """The entries of the queue list of a worker, as far as they are looked at."""
        return [str(each) for each in entries_of(self.known)[:MOST_ENTRIES]]

    @property
    def threads(self) -> int:
        """How many threads a worker has; 0 if that is not known."""
        found = self.known.get("threads")
        return found if type(found) is int else 0

    @property
    def serves_text(self) -> str:
        """The queue list of a worker on one line; empty: it has none."""
        return (
            f"{queues_text(self.known)}; {self.known.get('threads')} threads" if self.queues else ""
        )

    @property
    def serves_any(self) -> bool:
        """Whether this is a live worker."""
        return self.is_live and self._is_worker

    @property
    def _is_worker(self) -> bool:
        return self.row.kind == "worker" and bool(self.queues)

    @cached_property
    def _list(self) -> QueueList:
        return QueueList(self.queues)

    def serves(self, queue: str) -> bool:
        """Whether this is a live worker that takes jobs from a queue."""
        return self.is_live and self.would_serve(queue)

    def would_serve(self, queue: str) -> bool:
        """Whether this is a worker that takes jobs from a queue, as long as it lives."""
        return self._is_worker and self._list.takes(queue)


def listed_processes(using: str) -> list[ListedProcess]:
    """Return the processes of a database, each after the one that has started it."""
    rows = read_processes(using)
    claims = ClaimedExecution.objects.using(using).filter(process_id__in=[row.pk for row in rows])
    held = dict(claims.values_list("process_id").annotate(Count("pk")).order_by())
    return listed(using, rows, held)


def read_processes(using: str) -> list[Any]:
    """Return the rows of the registered processes, each with the database's ``present`` time: by
    one query, unless one is damaged."""
    rows: Any = Process.objects.using(using).order_by("pk")
    rows = rows.annotate(present=Database.of(using).now())
    with suppress_damage():
        return list(rows[:MOST])
    keys = list(rows.values_list("pk", flat=True)[:MOST])
    return read_in_order(rows, keys)[0]


def listed(using: str, rows: Iterable[Any], running: Mapping[int, int]) -> list[ListedProcess]:
    """Return the processes of these rows, each after the one that has started it; ``running`` are
    their claimed jobs."""
    threshold = alive_threshold(using)
    found = [
        ListedProcess(row, portable.aware(row.present), threshold, running.get(row.pk, 0))
        for row in rows
    ]
    return as_tree(found)


def _life(row: Process, present: datetime, threshold: timedelta) -> tuple[timedelta | None, str]:
    with suppress_damage():
        last = portable.aware(row.last_heartbeat_at)
        if last <= NEVER_AGAIN:
            return None, DEAD
        silence = max(timedelta(0), present - last)
        return silence, STALE if silence > threshold else LIVE
    return None, STALE


def _ahead(row: Process, present: datetime) -> timedelta | None:
    with suppress_damage():
        return max(timedelta(0), portable.aware(row.last_heartbeat_at) - present) or None
    return None


def workers_of(processes: Iterable[ListedProcess], queue: str) -> int:
    """Return how many live workers serve a queue."""
    return sum(each.serves(queue) for each in processes)


def as_tree(rows: list[Any]) -> list[Any]:
    """Return the rows in an order in which each process follows the one that started it."""
    ids = {row.pk for row in rows}
    children: dict[int, list[Any]] = {}
    for row in rows:
        row.nested = row.supervisor_id in ids and row.supervisor_id != row.pk
        if row.nested:
            children.setdefault(row.supervisor_id, []).append(row)
    tree = []
    for row in rows:
        if not row.nested:
            tree += [row, *children.pop(row.pk, ())]
    # The rest was started by a nested process, which only manual edits can bring about.
    return tree + [row for rest in children.values() for row in rest]


def alive_threshold(using: str) -> timedelta:
    """Return the silence after which a process of this database is considered dead."""
    try:
        return options_on(using).process_alive_threshold
    except (ConfigurationError, ImproperlyConfigured):
        return DEFAULT_THRESHOLD  # Reported by the system checks.


def metadata_of(row: Process) -> dict[str, Any]:
    """Return what a process tells of itself; nothing if its row was damaged, or holds
    more than a process tells."""
    try:
        found = {} if is_too_long(row) else json.loads(row.metadata)
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def entries_of(known: dict[str, Any]) -> list[Any]:
    """Return all entries of the queue list of a worker."""
    found = known.get("queues")
    return found if isinstance(found, list) else []


def queues_text(known: dict[str, Any]) -> str:
    """Return the queue list of a worker as text, and how many entries are left out."""
    entries = entries_of(known)
    left = len(entries) - MOST_ENTRIES
    more = f" and {left:,} more, which are not looked at" if left > 0 else ""
    return ", ".join(map(str, entries[:MOST_ENTRIES])) + more


def is_too_long(row: Process) -> bool:
    """Whether a row holds more than a process tells of itself, so that it is not read."""
    return isinstance(row.metadata, (str, bytes)) and len(row.metadata) > MOST_METADATA
