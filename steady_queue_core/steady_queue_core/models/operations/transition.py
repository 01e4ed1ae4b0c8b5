"""What operators' acts on jobs have in common: one transaction, and one order of its locks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from django.db.models import Q, QuerySet

from ...dialects import JobKey, Link, MemberState, portable
from ...dialects.database import Database
from ...signals import Signal, send_after_commit
from ..execution import Execution, ScheduledExecution, WaitingExecution
from ..semaphore import lock_semaphores

T = TypeVar("T")
States = Sequence[type[Execution]]

#: The states whose rows are locked before semaphores, as the dispatcher does. Permits move the
#: others.
BEFORE_SEMAPHORES = (WaitingExecution, ScheduledExecution)


class Keys(NamedTuple):
    """The keys of some jobs."""

    #: Those of their limits, sorted.
    concurrency: list[str]
    #: The unique ones that they have, or want, by the ids of the jobs.
    unique: dict[int, JobKey]
    #: The jobs that are members of batches.
    members: list[int]


class Transition:
    """An act on some of all ``jobs``, in one transaction.

    Its methods take the locks in the order in which they stand here: unique keys, executions that
    no permit moves, semaphores, other executions. Then the jobs are changed. What this frees is
    given away last: unique keys, permits, and batches that have waited for members.
    """

    def __init__(self, jobs: QuerySet[Any], job_ids: Sequence[int]) -> None:
        self.jobs, self.job_ids = jobs, job_ids
        self.database = Database.of(jobs.db)
        self._unique: dict[str, int] = {}
        self._has_semaphores = False

    @classmethod
    def perform(
        cls, jobs: QuerySet[Any], job_ids: Sequence[int], act: Callable[[Transition], T]
    ) -> T:
        """Perform an act in one transaction, once more after a deadlock; return its result."""
        return Database.of(jobs.db).in_transaction(lambda: act(cls(jobs, job_ids)))

    @cached_property
    def keys(self) -> Keys:
        """The keys of the jobs, read before any lock is taken."""
        return keys_of(self.jobs, self.job_ids)

    def lock_unique_keys(self) -> None:
        """Lock those of the unique keys of the jobs that they have.

        Whoever replaces a job, and so changes the key of its limit, has locked its unique key: the
        other keys are read once more under this lock.
        """
        wanted = self.keys.unique
        if not wanted:
            return
        rows = self.database.unique_keys.read({key.key for key in wanted.values()})
        self._unique = {key: row.job_id for key, row in rows.items() if row.job_id in wanted}
        self.database.unique_keys.lock(self._unique)
        if self._unique:
            limited = self.jobs.filter(
                pk__in=set(self._unique.values()), concurrency_key__isnull=False
            )
            found = self.database.present_rows.of(limited.values_list("concurrency_key", flat=True))
            self.keys = self.keys._replace(concurrency=sorted({*self.keys.concurrency, *found}))

    def hold(
        self, states: States, job_ids: Sequence[int] | None = None
    ) -> Iterator[tuple[type[Execution], list[Any]]]:
        """Lock the executions of the jobs, or of these of them, in one state after the other; yield
        each state with its executions.

        A job that is claimed meanwhile is left alone: whoever locks its execution first has it.
        """
        limited = self.keys.concurrency
        for state in states:
            if state not in BEFORE_SEMAPHORES and not self._has_semaphores:
                lock_semaphores(self.database, limited)
                self._has_semaphores = True
            rows = self.rows(state, self.job_ids if job_ids is None else job_ids)
            yield state, list(self.database.lock_rows(rows.order_by("pk"), wait=True))

    def remove(self, states: States, job_ids: Sequence[int] | None = None) -> list[Any]:
        """Delete the executions in these states, and their permits; return the executions."""
        found: list[Any] = []
        for state, held in self.hold(states, job_ids):
            self.rows(state, ids_of(held))._raw_delete(self.database.alias)
            found += held
        portable.end_permits(self.database.connection, ids_of(found))
        return found

    def rows(self, state: type[Execution], job_ids: Sequence[int]) -> QuerySet[Any]:
        """Return the executions of jobs in a state."""
        return state._default_manager.using(self.database.alias).filter(pk__in=job_ids)

    def free_unique_keys(self, job_ids: Collection[int] = ()) -> None:
        """Free those of the locked unique keys that these jobs have, or that no job has."""
        self.database.unique_keys.free(
            {key: job_id if job_id in job_ids else None for key, job_id in self._unique.items()}
        )

    def pass_permits_on(self) -> None:
        """Admit jobs that the limits of these jobs have blocked."""
        if self.database.admit(self.keys.concurrency):
            self.database.ring_after_commit([])

    def end(
        self,
        states: States,
        to_state: MemberState,
        change: Callable[[Transition, list[Any]], None],
        signal: Signal,
    ) -> int:
        """Let those of the jobs end that are in one of the ``states``; return their number.

        ``change`` is given their former executions, ``to_state`` is the state that members of
        batches get, and ``signal`` is sent after the commit.
        """
        self.lock_unique_keys()
        executions = self.remove(states)
        ended = ids_of(executions)
        gone = {*ended}
        self.free_unique_keys(gone)
        if ended:
            change(self, executions)
        self.pass_permits_on()
        self.database.end_members({pk: to_state for pk in self.keys.members if pk in gone})
        if ended:
            task_ids = [str(pk) for pk in ended]
            send_after_commit(signal, self.jobs.model, self.database.alias, task_ids=task_ids)
        return len(ended)


def ids_of(executions: Iterable[Any]) -> list[int]:
    """Return the ids of the jobs that these executions are of."""
    return [row.pk for row in executions]


def keys_of(jobs: QuerySet[Any], job_ids: Sequence[int]) -> Keys:
    """Return the keys of these of all ``jobs``."""
    # In one statement, for most jobs have neither.
    has_some = Q(concurrency_key__isnull=False) | Q(metadata__isnull=False)
    rows = jobs.filter(has_some, pk__in=job_ids)
    concurrency, unique, members = set(), {}, []
    for pk, key, metadata in rows.values_list("pk", "concurrency_key", "metadata"):
        if key is not None:
            concurrency.add(key)
        if (own := JobKey.read(metadata)) is not None:
            unique[pk] = own
        if (link := Link.read(metadata)) is not None and not link.is_callback:
            members.append(pk)
    return Keys(sorted(concurrency), unique, members)
