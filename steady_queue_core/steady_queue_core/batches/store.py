"""Stores compiled graphs: batches, jobs, members, and what these wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

from django.db import connections

from ..bulk import REFUSALS, Call, located
from ..compat import InvalidTask, TaskResult, task_enqueued
from ..dialects import EnqueuedJob, JobKey, Link, NewJob
from ..dialects.batches import parts
from ..dialects.database import Database
from ..dialects.membership import DependencyState, MemberState, RunWhen, linked
from ..dialects.portable import storable
from ..models import BatchMember, Dependency, JobBatch
from ..models.execution import WaitingExecution
from ..tasks import current_batch
from ..tasks.callbacks import share_a_database
from ..tasks.placement import beside
from ..tasks.task_signals import Audience, send_task_signal
from .graph import Graph, Member
from .parent_results import shape_of
from .places import Places, Shape
from .values import row_values

#: Most rows of one statement that writes a value for each.
MOST_VALUES = 500


@dataclass(eq=False, slots=True)
class _Node:
    """A call of a graph, with its job."""

    graph: Graph
    member: Member
    backend: Any
    encoded: Any
    job: NewJob
    stored: EnqueuedJob | None = None


class GraphStore:
    """Stores one graph: encodes its calls first, and then inserts everything."""

    def __init__(self, graph: Graph, backend: Any) -> None:
        self.graph, self.backend = graph, backend
        self.database = Database.of(backend.database)
        self.using = self.database.alias
        self.places = (
            Places(graph, partial(shape_of, self.using)) if _is_signed(graph, backend) else None
        )
        with current_batch.outside():
            self.nodes = [
                self._node(owner, member, member.call)
                for owner, member in graph.walk()
                if member.call is not None
            ]

    def shape_of(self, member: Member) -> Shape:
        """Return what the value of a member is made of, for jobs that are added later."""
        return None if self.places is None else self.places.shape(member)

    def store_by(self, insert: Callable[[], None]) -> None:
        """Store the graph by ``insert``, which calls :meth:`insert` in a transaction, through the
        middleware of its backends."""

        def store() -> None:
            for backend in dict.fromkeys(node.backend for node in self.nodes):
                backend.require_room([n.encoded for n in self.nodes if n.backend is backend])
            insert()
            self._tell()

        self._through([node.backend for node in self.nodes], store)

    def insert(self) -> None:
        """Insert everything below the graph, whose batch exists, in the current transaction; once
        more if that was rolled back."""
        self._insert_batches()
        self._insert_jobs()
        self._insert_members()
        self._insert_waits()
        queues = [node.job.queue_name for node in self.nodes if not node.job.waits]
        self.database.ring_after_commit(list(dict.fromkeys(queues)))

    def _through(self, backends: Sequence[Any], insert: Callable[[], None]) -> None:
        """Call ``insert`` through the middleware of these backends."""
        if not backends:
            insert()
            return
        first, rest = backends[0], [each for each in backends if each is not backends[0]]
        nodes = [node for node in self.nodes if node.backend is first]

        def store(calls: Sequence[Any]) -> list[TaskResult]:
            for node, encoded in zip(nodes, calls, strict=True):
                if encoded is not node.encoded:
                    node.encoded = encoded
                    node.job = first.new_job(encoded)
            self._through(rest, insert)
            return [first.new_result(node.encoded, node.stored) for node in nodes]

        if (chain := first.middleware) is None:
            self._through(rest, insert)
        else:
            chain.enqueue([node.encoded for node in nodes], store)

    def _node(self, graph: Graph, member: Member, given: Call) -> _Node:
        task = beside(given.task, self.backend)
        own: Any = task.get_backend()
        path = given.task.module_path
        if not share_a_database(self.backend, own) or not self.backend.stores_jobs:
            raise InvalidTask(
                f"{path} cannot be part of it: its backend {given.task.backend!r} does not store "
                f"its jobs in the database of {self.backend.alias!r}. Use backends on one database."
            )
        try:
            encoded = own.encode(task, list(given.args), dict(given.kwargs))
        except REFUSALS as error:
            raise located(error, path) from error
        if self.places is not None:
            encoded = encoded.placed(self.places.node(member), self.places.sources(member))
        encoded.waits = bool(member.waits)
        job: NewJob = own.new_job(encoded)
        if JobKey.read(job.metadata) is not None:
            raise InvalidTask(
                f"{path} cannot be part of a chain, group or workflow: its calls are unique, and "
                "a duplicate would be a job of somebody else. Call a task without a unique key."
            )
        return _Node(graph, member, own, encoded, job)

    def _insert_batches(self) -> None:
        """Insert the batches in the batch, each after the one that it belongs to."""
        nested = [member.graph for _, member in self.graph.walk() if member.graph is not None]
        if not nested:
            return
        present = self.database.storable_time()
        rows = [
            JobBatch(
                **row_values(graph.kind, graph.options, self.backend),
                created_at=present,
                started_at=present,
            )
            for graph in nested
        ]
        self._insert(JobBatch, rows)
        for graph, row in zip(nested, rows, strict=True):
            graph.batch_id = row.pk

    def _insert_jobs(self) -> None:
        for node in self.nodes:
            assert node.graph.batch_id is not None
            link = Link(node.graph.batch_id, has_dependents=True)
            node.job = replace(node.job, metadata=linked(node.job.metadata, link))
        for waits in (False, True):
            some = [node for node in self.nodes if node.job.waits is waits]
            jobs = [node.job for node in some]
            stored = self.database.dialect.insert_jobs(self.database.connection, jobs)
            for node, new in zip(some, stored, strict=True):
                node.stored = new

    def _insert_members(self) -> None:
        stored = {id(node.member): node.stored for node in self.nodes}
        rows, members, nested = [], [], []
        for graph, member in self.graph.walk():
            new = stored.get(id(member))
            job_id = None if new is None else new.job_id
            # Those that were not stored found no permit.
            is_discarded = new is not None and job_id is None
            member.state = MemberState.DISCARDED if is_discarded else MemberState.PENDING
            row = BatchMember(
                batch_id=_known(graph.batch_id), job_id=job_id, name=member.name, state=member.state
            )
            rows.append(row)
            members.append(member)
        self._insert(BatchMember, rows)
        for member, row in zip(members, rows, strict=True):
            member.member_id = row.pk
            if member.graph is not None:
                nested.append(JobBatch(pk=member.graph.batch_id, member_id=row.pk))
        batches = JobBatch.objects.using(self.using)
        for some in parts(nested, MOST_VALUES):
            batches.bulk_update(some, ["member"])

    def _insert_waits(self) -> None:
        waiting = [node for node in self.nodes if node.job.waits]
        self._bulk(WaitingExecution, [self._waiting_row(node) for node in waiting])
        self._bulk(Dependency, [row for node in waiting for row in _dependencies(node)])
        if done := [
            node.stored.job_id for node in waiting
            if node.stored is not None and node.stored.job_id is not None
            and all(parent.state is not MemberState.PENDING for parent, _ in node.member.waits)
        ]:  # fmt: skip
            self.database.joined(lambda joins: joins.release(done))
        if any(member.state is MemberState.DISCARDED for _, member in self.graph.walk()):
            nested = [each.graph for _, each in self.graph.walk() if each.graph is not None]
            for graph in reversed(nested):
                assert graph.batch_id is not None
                self.database.end_if_done(graph.batch_id)

    def _waiting_row(self, node: _Node) -> WaitingExecution:
        job, new = node.job, node.stored
        assert new is not None
        return WaitingExecution(
            job_id=_known(new.job_id),
            queue_name=job.queue_name,
            rank=job.rank,
            created_at=storable(new.enqueued_at),
            width=len(node.member.waits),
            due_at=None if job.run_at is None else storable(job.run_at),
            delay=job.delay,
            concurrency_key=None if job.limit is None else job.limit.key,
        )

    def _bulk(self, model: Any, rows: Sequence[Any]) -> None:
        for some in parts(rows):
            model.objects.using(self.using).bulk_create(some)

    def _insert(self, model: Any, rows: Sequence[Any]) -> None:
        """Insert rows in their order, and set their ids."""
        if connections[self.using].features.can_return_rows_from_bulk_insert:
            self._bulk(model, rows)
            return
        for has_job, run in groupby(rows, lambda row: getattr(row, "job_id", None) is not None):
            if has_job:
                self._insert_by_job(model, list(run))
            else:
                for row in run:
                    row.save(using=self.using, force_insert=True)

    def _insert_by_job(self, model: Any, rows: Sequence[Any]) -> None:
        for some in parts(rows):
            model.objects.using(self.using).bulk_create(some)
            found = model.objects.using(self.using).filter(job_id__in=[row.job_id for row in some])
            ids = dict(found.values_list("job_id", "pk"))
            for row in some:
                row.pk = ids[row.job_id]

    def _tell(self) -> None:
        """Send ``task_enqueued`` for each job."""
        if Audience().hears(task_enqueued):
            for node in self.nodes:
                if node.stored is not None and node.stored.job_id is not None:
                    result = node.backend.new_result(node.encoded, node.stored)
                    send_task_signal(task_enqueued, type(node.backend), result)


def _is_signed(graph: Graph, backend: Any) -> bool:
    """Whether the backend of any call of a graph signs payloads."""
    tasks = {member.call.task for _, member in graph.walk() if member.call is not None}
    codecs = [getattr(beside(each, backend).get_backend(), "payload_codec", None) for each in tasks]
    return any(codec is not None and codec.options.sign for codec in codecs)


def _dependencies(node: _Node) -> Iterator[Dependency]:
    assert node.stored is not None
    for number, (parent, run_when) in enumerate(node.member.waits):
        yield Dependency(
            job_id=_known(node.stored.job_id),
            parent_id=_known(parent.member_id),
            run_when=run_when,
            state=_state(parent.state, run_when),
            number=number,
        )


def _known(pk: int | None) -> int:
    assert pk is not None  # It was stored before.
    return pk


def _state(parent: MemberState, run_when: RunWhen) -> DependencyState:
    return DependencyState.OPEN if parent is MemberState.PENDING else run_when.after(parent)
