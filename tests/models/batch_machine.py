"""The machine of ``machine.py``, with jobs that belong to batches, wait for others, and sleep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from asgiref.sync import async_to_sync, sync_to_async
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from steady_queue_core import (
    AlreadyFinished,
    Batch,
    Workflow,
    call,
    chain,
    enqueue_many,
    group,
    limits_concurrency,
    task,
)
from steady_queue_core.arguments import decode_call
from steady_queue_core.bulk import Call
from steady_queue_core.dialects import ClaimedJob, Link
from steady_queue_core.errors import Preempted
from steady_queue_core.features.steps.sleep import DurableSleep
from steady_queue_core.models import BatchMember, Job, JobBatch
from steady_queue_core.models.operations.batch_maintenance import BatchMaintenance, FinishedBatches
from steady_queue_core.processes.worker.attempt import Attempt
from steady_queue_core.tasks import current_batch

from . import batch_ledger as ledgers
from .batch_ledger import FAILURES, NAP, SUCCESS, WAITING, BatchLedger, BatchWanted, Member, Wait
from .batch_tables import BatchTables
from .ledger import BLOCKED, CLAIMED, FAILED, READY, SCHEDULED
from .machine import HOUR, STEP, QueueMachine, choice, choices, endings, limits, tell

#: The names of the callbacks of batches.
NAMES = ("success", "failure", "finish")


@task(queue_name="told")
def tell_of_batch(name: str) -> None:
    """Do nothing."""


@task(max_attempts=1)
def work() -> None:
    """Do nothing."""


@limits_concurrency(key="one", to=1, duration=timedelta(hours=2.9))
@task(max_attempts=1)
def limited() -> None:
    """Do nothing."""


limit = limited.concurrency
assert limit is not None
KEY = str(limit.of_call(limited, (), {}).key)

members = st.builds(
    BatchWanted,
    queue=st.sampled_from(["etl", "mail"]),
    rank=st.integers(-1, 1),
    due=st.sampled_from([None, None, None, 1.0]),
    key=st.sampled_from([None, None, None, KEY]),
    duration=st.just(2.9),
    delivery=st.sampled_from([None, None, "at_least_once"]),
    kept=st.sampled_from([None, None, None, 0.0, 1.0]),
    kept_failed=st.sampled_from([None, None, 1.0]),
    told=st.sampled_from([(False, False), (False, False), (True, True)]),
)
#: What a task of a chain, group or workflow is: these jobs are kept for each other.
awaited = st.builds(replace, members, kept=st.none(), is_awaited=st.just(True))
told = st.sets(st.sampled_from(NAMES)).map(sorted)
few = st.lists(members, min_size=1, max_size=3)


class Node(NamedTuple):
    """A call of a workflow, or a chain or group of several, after earlier nodes."""

    wanted: list[BatchWanted]
    kind: str
    after: list[int]
    run_when: str


nodes = st.lists(
    st.builds(
        Node,
        wanted=st.lists(awaited, min_size=1, max_size=2),
        kind=st.sampled_from(["chain", "group"]),
        after=choices.map(lambda numbers: numbers[:2]),
        run_when=st.sampled_from(["success", "success", "failure", "finished"]),
    ),
    min_size=1,
    max_size=4,
)
kinds = st.sampled_from(["workflow", "workflow", "chain", "group"])
#: Which batch is open meanwhile, if one is.
outer = st.none() | choice
ways = st.sampled_from(["return", "return", "snooze", "discard", "retry", "fail", "sleep"])


def _nothing(self: Any, *args: Any, **kwargs: Any) -> None:
    """Do nothing."""


class BatchMachine(QueueMachine):
    ledger: BatchLedger

    @initialize(processes=st.integers(1, 3))
    def begin(self, processes: int) -> None:
        super().begin(processes)
        self.tables, self.ledger = BatchTables(self.using), BatchLedger()
        self.tables.clear()
        self.processes.clear()
        for _ in range(processes):
            self.register()
        #: The last attempt that was made.
        self.attempt: Attempt | None = None
        self.is_to_sleep = False

    @invariant()
    def a_sweep_finds_nothing(self) -> None:
        if not self.is_replayed:
            self.sweep()

    def teardown(self) -> None:
        if self.is_replayed:
            self.sweep()

    def sweep(self) -> None:
        found = BatchMaintenance(self.using, Job.objects.using(self.using)).do()
        assert found == 0, f"{found} rows were to be repaired"

    # --- what is added

    @rule(wanted=few, within=st.none() | few, told=told, outer=outer, raises=st.booleans())
    def open_batch(
        self, wanted: Any, within: Any, told: list[str], outer: int | None, raises: bool
    ) -> None:
        """Make a batch, perhaps with another one in it, perhaps in another one."""
        ledger = deepcopy(self.ledger)
        batches: list[Batch] = []

        def block() -> None:
            batches.append(Batch(**_callbacks(told)))
            with batches[0] as batch:
                self._made(batch.id, told=told)
                self._enqueue(wanted, batch.id)
                if within is not None:
                    with Batch() as inner:
                        self._made(inner.id)
                        self._enqueue(within, inner.id)
                        self.ledger.start(inner.id)
                if raises:
                    raise LookupError
                self.ledger.start(batch.id)

        try:
            self._in(outer, block)
        except LookupError:
            self.ledger = ledger
        self._called_back()

    @rule(wanted=few, number=choice)
    def add_members(self, wanted: Any, number: int) -> None:
        """Add jobs to a batch, from elsewhere."""
        batch_id = self._batch(number)
        if batch_id is None:
            return
        with self._refused_unless_taken(batch_id) as takes:
            if takes:
                with Batch.get(batch_id):
                    self._enqueue(wanted, batch_id)
            else:
                Batch.get(batch_id).add([call(work)])

    @rule(nodes=nodes, kind=kinds, told=told, outer=outer)
    def enqueue_graph(
        self, nodes: list[Node], kind: str, told: list[str], outer: int | None
    ) -> None:
        self._in(outer, lambda: self._graph(nodes, kind, told))
        self._called_back()

    @rule(
        wanted=few, nodes=nodes, number=outer, ended=endings, cancels=st.booleans(),
        raises=st.booleans(),
    )  # fmt: skip
    def hold_open(
        self, wanted: Any, nodes: list[Node], number: int | None, ended: Any, cancels: bool,
        raises: bool,
    ) -> None:  # fmt: skip
        """Keep a batch open as a coroutine does, without a transaction, while workers go on."""
        batch_id = None if number is None else self._batch(number)
        batch = Batch() if batch_id is None else Batch.get(batch_id)
        takes = batch_id is None or self.ledger.takes_more(batch_id)

        def work_on() -> None:
            assert takes
            if batch_id is None:
                self._made(batch.id)
            self._enqueue(wanted, batch.id)
            with current_batch.outside():
                self.claim(0, ("*",), 6)
                self.settle([(number, *rest) for number, (_, *rest) in enumerate(ended)])
                if cancels:
                    assert batch.cancel() is self.ledger.cancel_batch(batch.id)
                    self._called_back()
                self.tables.check(self.ledger)
            with self._refused_unless_taken(batch.id):
                self._graph(nodes, "group", [])
            if raises:
                raise LookupError

        async def block() -> None:
            async with batch:
                await sync_to_async(work_on, thread_sensitive=True)()

        try:
            async_to_sync(block)()
        except AlreadyFinished:
            assert not takes
            return
        except LookupError:
            self.ledger.cancel_batch(batch.id)
        self.ledger.start(batch.id)
        self._called_back()

    @rule(number=choice, wanted=few, node=nodes, as_node=st.booleans())
    def grow(self, number: int, wanted: Any, node: list[Node], as_node: bool) -> None:
        """Let a job of a batch add others to it."""
        claim, link = self._running(number)
        if claim is None or link is None:
            return
        context = self._attempt(claim).context
        if not as_node:
            with self._refused_unless_taken(link.batch_id), context.batch:
                self._enqueue(wanted, link.batch_id)
        elif (workflow := context.workflow) is not None:
            with self._refused_unless_taken(workflow.id):
                self._add_node(workflow, node[0])

    @rule(number=choice, wanted=few, cancels=st.booleans())
    def leave_calls(self, number: int, wanted: Any, cancels: bool) -> None:
        """Let a job leave calls for its batch to the transaction of its outcome."""
        claim, link = self._running(number)
        if claim is None or link is None or not self.ledger.takes_more(link.batch_id):
            return
        attempt, self.is_to_sleep = self._attempt(claim), False
        context = attempt.context
        self._store(claim, attempt, 0, is_live=True)
        try:
            self._take_steps(claim, attempt, 0, is_live=True)
        except DurableSleep as sleep:
            self._fall_asleep(sleep)
            return
        wanted = self._prepared([replace(each, key=None) for each in wanted], link.batch_id)
        with context.batch:
            for each in wanted:
                context.enqueue(self._call(each).task)
        if cancels:
            assert context.batch.cancel() is self.ledger.cancel_batch(link.batch_id)
            self._called_back()
        takes = self.ledger.takes_more(link.batch_id)
        done = attempt.succeeded(1, lambda: attempt.started_at)
        outcome = self._with_callback(claim, done)
        assert self.dialect.settle(self.connection, [outcome]) == {claim.job_id}
        assert outcome.sequel is not None
        self._left(outcome.sequel.follow_ups, wanted, takes)
        self._ended_by_itself(claim.job_id, "return", 0)
        self._called_back()

    # --- what ends, and what follows

    @rule(number=choice, which=ways)
    def end_as_the_task_chooses(self, number: int, which: str) -> None:
        self.is_to_sleep = which == "sleep"
        try:
            super().end_as_the_task_chooses(number, "snooze" if which == "sleep" else which)
        except DurableSleep as sleep:
            self._fall_asleep(sleep)

    def _take_steps(
        self, claim: ClaimedJob, attempt: Attempt, number: int, *, is_live: bool
    ) -> None:
        """Let a task take the steps that are stored, sleep on in a sleep that is not over, and
        perhaps take another step, or begin to sleep."""
        steps, entry = attempt.notes.steps, self.ledger.jobs.get(claim.job_id)
        known = [] if entry is None else entry.steps
        try:
            for position, (_, value) in enumerate(known):
                if value == NAP:
                    steps.sleep(f"sleep {position}", HOUR)
                else:
                    assert steps.step(f"step {position}", int, (number,), {}) == value
            if self.is_to_sleep and (entry is None or entry.wanted.delivery != "at_most_once"):
                steps.sleep(f"sleep {len(known)}", (1 + self._step) * HOUR)
            elif number % 3 == 1:
                steps.step(f"step {len(known)}", int, (number,), {})
                assert is_live
                known.append((claim.token, number))
        except Preempted:
            assert not is_live

    def _fall_asleep(self, sleep: DurableSleep) -> None:
        """End the last attempt, in which this was raised."""
        attempt, ledger = self.attempt, self.ledger
        assert attempt is not None
        claim = attempt.claim
        is_live = ledger.holds(claim.job_id, claim.token)
        done = self._with_callback(claim, attempt.raised(sleep, lambda: claim.claimed_at))
        told = self.dialect.settle(self.connection, [done])
        assert told == ({claim.job_id} if is_live else set())
        if is_live:
            place = claim.job_id, int(sleep.name.removeprefix("sleep "))
            if place not in ledger.naps:
                ledger.jobs[claim.job_id].steps.append((claim.token, NAP))
                ledger.naps[place] = ledger.now + 1 + self.steps * STEP
            assert ledger.naps[place] > ledger.now, "It sleeps on after its sleep is over."
            ledger.sleep(claim.job_id, ledger.naps[place])

    def _attempt(self, claim: ClaimedJob) -> Attempt:
        known = super()._attempt(claim)
        self.attempt = Attempt(
            claim, known.task, known.backend, known.worker, known.started_at,
            now=lambda: self.dialect.current_time(self.connection),
        )  # fmt: skip
        return self.attempt

    def _end_expired(self, claims: list[ClaimedJob]) -> None:
        """What was cancelled ends instead of starting, too."""
        cancelled = [claim for claim in claims if claim.is_cancelled]
        outcomes = [
            self._with_callback(each, self._attempt(each).cancelled(each.claimed_at))
            for each in cancelled
        ]
        if outcomes:
            ids = [each.job_id for each in cancelled]
            assert self.dialect.settle(self.connection, outcomes) == set(ids)
            self.ledger.end_cancelled(ids)
            self._called_back()
        super()._end_expired([each for each in claims if not each.is_cancelled])

    @rule(limit=limits)
    def dispatch(self, limit: int) -> None:
        """All of them: what moves on at once has no order among itself."""
        super().dispatch(limit + 100)

    def cancel(self) -> None:
        states = READY, BLOCKED, SCHEDULED, CLAIMED, FAILED, WAITING
        found = self.ledger.ids(*states)[self.steps % 3 :: 3]
        jobs = Job.objects.using(self.using).filter(pk__in=found)
        assert jobs.cancel() == self.ledger.cancel(found)
        self._called_back()

    @rule(chosen=choices)
    def discard(self, chosen: list[int]) -> None:
        known = self.ledger.ids(READY, BLOCKED, SCHEDULED, FAILED, WAITING)
        found = {known[number % len(known)] for number in chosen if known} | {*self._any(chosen)}
        jobs = Job.objects.using(self.using).filter(pk__in=found)
        assert jobs.discard() == self.ledger.discard(found)
        self._called_back()

    def clear_queue(self) -> None:
        super().clear_queue()
        self._called_back()

    @rule(number=choice)
    def cancel_batch(self, number: int) -> None:
        batch_id = self._batch(number)
        if batch_id is not None:
            assert Batch.get(batch_id).cancel() is self.ledger.cancel_batch(batch_id)
            self._called_back()

    @rule(number=choice)
    def retry_batch(self, number: int) -> None:
        """Mostly one of which something has failed."""
        failed = {each.batch for each in self.ledger.members.values() if each.state in FAILURES}
        known = sorted(failed) * 4 + sorted(self.ledger.batches)
        if known:
            batch_id = known[number % len(known)]
            assert Batch.get(batch_id).retry() == self.ledger.retry_batch(batch_id)
            self._called_back()

    @rule(
        passing=st.sampled_from([0.0, 1.5]),
        what=st.sampled_from(["finished", "kept", "kept", "batches", "batches"]),
    )  # fmt: skip
    def clear(self, passing: float, what: str) -> None:
        """Delete what has ended a while ago."""
        if passing:
            self.let_time_pass(passing)
        getattr(self, f"clear_{what}")()

    def clear_batches(self) -> None:
        hours = 0.5
        before = self.dialect.current_time(self.connection) - hours * HOUR
        sweep, cleared = FinishedBatches(self.using, before), 0
        while not sweep.exhausted:
            cleared += sweep.clear(2)
        assert cleared == self.ledger.clear_batches(hours)

    @rule(which=st.sampled_from(["register", "deregister", "clear_queue", "cancel", "cancel"]))
    def do_what_is_rare(self, which: str) -> None:
        super().do_what_is_rare(which)

    # Left to the other machine.
    beat = deliver = follow = pause_or_resume = run_chains = settle_and_claim = _nothing
    maintain_semaphores = _nothing

    @rule(
        nodes=nodes, kind=kinds, told=told, outer=outer, wanted=few,
        ends=st.lists(st.tuples(choice, ways), max_size=5), retries=st.booleans(),
    )  # fmt: skip
    def run_graph(
        self, nodes: list[Node], kind: str, told: list[str], outer: int | None, wanted: Any,
        ends: list[tuple[int, str]], retries: bool,
    ) -> None:  # fmt: skip
        """Let a batch go through what it is there for."""
        self.enqueue_graph(nodes, kind, told, outer)
        for number, which in ends:
            self.claim(0, ("*",), 6)
            self.end_as_the_task_chooses(number, which)
        if retries:
            self.retry_batch(0)

    # --- what the steps share

    def _in(self, number: int | None, block: Callable[[], None]) -> None:
        """Do something, perhaps while a batch is open."""
        batch_id = None if number is None else self._batch(number)
        if batch_id is None:
            block()
            return
        with self._refused_unless_taken(batch_id), Batch.get(batch_id):
            block()

    @contextmanager
    def _refused_unless_taken(self, batch_id: int) -> Iterator[bool]:
        """What is added to a batch is refused, if that takes nothing any more."""
        takes = self.ledger.takes_more(batch_id)
        try:
            yield takes
        except AlreadyFinished:
            assert not takes
        else:
            assert takes, f"batch {batch_id} took more"

    def _batch(self, number: int) -> int | None:
        """Return a batch, mostly one that takes more, if there is any."""
        known = sorted(self.ledger.batches)
        known = [pk for pk in known if self.ledger.takes_more(pk)] * 3 + known
        return known[number % len(known)] if known else None

    def _running(self, number: int) -> tuple[ClaimedJob | None, Link | None]:
        """Return a job of a batch that runs."""
        live = [each for each in self.claims if self.ledger.holds(each.job_id, each.token)]
        known = [(claim, link) for claim in live
                 if (link := claim.link) and link.batch_id in self.ledger.batches]  # fmt: skip
        return known[number % len(known)] if known else (None, None)

    def _call(self, wanted: BatchWanted) -> Call:
        """Return the call that somebody wants."""
        given = {
            "queue_name": wanted.queue,
            "priority": -wanted.rank,
            "run_after": None if wanted.due is None else wanted.due * HOUR,
            "delivery": wanted.delivery,
            "max_crashes": wanted.metadata.max_crashes,
            "retention": wanted.metadata.retention,
            "failure_retention": wanted.metadata.failure_retention,
            "on_success": tell if wanted.told[0] else None,
            "on_failure": tell if wanted.told[1] else None,
        }
        return call((work if wanted.key is None else limited).using(**given))

    def _prepared(self, wanted: Sequence[BatchWanted], batch_id: int) -> list[BatchWanted]:
        """Return what is wanted of a batch; no two jobs are due at once."""
        return [
            replace(each, batch=batch_id, due=each.due and each.due + self._step)
            for each in wanted
        ]  # fmt: skip

    def _enqueue(self, wanted: Sequence[BatchWanted], batch_id: int) -> None:
        """Enqueue jobs in the block of a batch."""
        prepared = self._prepared(wanted, batch_id)
        ids = [int(result.id) for result in enqueue_many([self._call(each) for each in prepared])]
        self.ledger.stored(prepared, ids)
        self._joined(batch_id, ids)

    def _joined(self, batch_id: int, ids: list[int]) -> None:
        """Take in the jobs that are new members of a batch."""
        rows = BatchMember.objects.using(self.using).filter(batch_id=batch_id).order_by("pk")
        new = dict(rows.exclude(pk__in=list(self.ledger.members)).values_list("pk", "job_id"))
        assert list(new.values()) == ids, f"members: {new}, not {ids}"
        self.ledger.joined(batch_id, new)

    def _made(self, batch_id: int, kind: str = "batch", told: Sequence[str] = ()) -> None:
        """Take in a batch that is new, of which nothing is known yet."""
        row = JobBatch.objects.using(self.using).select_related("member").get(pk=batch_id)
        found = None if row.member is None else Member(row.member_id, row.member.batch_id)
        self.ledger.made(ledgers.Batch(batch_id, kind, tuple(told)), found)

    def _graph(self, nodes: list[Node], kind: str, told: Sequence[str]) -> None:
        """Enqueue a chain, group or workflow."""
        given = [node._replace(wanted=self._prepared(node.wanted, 0)) for node in nodes]
        steps = [self._step_of(node) for node in given]
        options = _callbacks(told)
        outer = current_batch.current()
        if kind == "workflow":
            workflow = Workflow(**options)
            for number, (node, step) in enumerate(zip(given, steps, strict=True)):
                after = [f"node {parent}" for parent in _parents(node, number)]
                workflow.add(step, name=f"node {number}", after=after, run_when=node.run_when)
            result = workflow.enqueue()
        else:
            result = (chain if kind == "chain" else group)(*steps, **options).enqueue()
        self._made(result.id, kind, told)
        member = self.ledger.batches[result.id].member
        within = None if member is None else self.ledger.members[member].batch
        assert within == (None if outer is None else outer.batch_id)
        rows = BatchMember.objects.using(self.using).filter(batch_id=result.id)
        placed: list[tuple[int, Node, list[Wait]]] = []
        for number, (pk, node) in enumerate(zip(_keys(rows), given, strict=True)):
            before = [each for each, *_ in placed]
            waits = {
                "workflow": [Wait(before[n], node.run_when) for n in _parents(node, number)],
                "chain": [Wait(before[-1], SUCCESS)] if before else [],
                "group": [],
            }
            placed.append((pk, node, waits[kind]))
        self._take_in(result.id, placed)
        self.ledger.start(result.id)

    def _add_node(self, workflow: Any, node: Node) -> None:
        """Add a node to a workflow that runs, after some of its nodes."""
        given = node._replace(wanted=self._prepared(node.wanted, 0))
        rows = BatchMember.objects.using(self.using).filter(batch_id=workflow.id)
        names = dict(rows.exclude(name="").order_by("pk").values_list("pk", "name"))
        keys = list(names)
        after = list(dict.fromkeys(keys[n % len(keys)] for n in node.after if keys))
        added = workflow.add(
            self._step_of(given), after=[names[pk] for pk in after], run_when=node.run_when
        )
        waits = [Wait(pk, node.run_when) for pk in after]
        self._take_in(workflow.id, [(added.member_id, given, waits)])
        self._called_back()

    def _step_of(self, node: Node) -> Any:
        calls = [self._call(each) for each in node.wanted]
        if len(calls) == 1:
            return calls[0]
        return (chain if node.kind == "chain" else group)(*calls)

    def _take_in(self, batch_id: int, placed: list[tuple[int, Node, list[Wait]]]) -> None:
        """Take in members of a batch with what they wait for."""
        members = BatchMember.objects.using(self.using)
        jobs: list[tuple[int, BatchWanted, list[Wait]]] = []
        for pk, node, waits in placed:
            if len(node.wanted) == 1:
                job_id = members.get(pk=pk).job_id
                self.ledger.joined(batch_id, {pk: job_id})
                jobs.append((job_id, replace(node.wanted[0], batch=batch_id), waits))
                continue
            nested = JobBatch.objects.using(self.using).get(member_id=pk)
            self._made(nested.pk, node.kind)
            self.ledger.batches[nested.pk].has_started = True
            keys = _keys(members.filter(batch_id=nested.pk))
            for number, (key, wanted) in enumerate(zip(keys, node.wanted, strict=True)):
                job_id = members.get(pk=key).job_id
                self.ledger.joined(nested.pk, {key: job_id})
                follows = node.kind == "chain" and number
                own = [Wait(keys[number - 1], SUCCESS)] if follows else deepcopy(waits)
                jobs.append((job_id, replace(wanted, batch=nested.pk), own))
        at_once = [(job_id, wanted) for job_id, wanted, waits in jobs if not waits]
        self.ledger.stored([wanted for _, wanted in at_once], [job_id for job_id, _ in at_once])
        for job_id, wanted, waits in jobs:
            if waits:
                self.ledger.wait(job_id, wanted, waits)

    def _left(self, follow_ups: Any, wanted: Sequence[BatchWanted], takes: bool) -> None:
        """Take in the jobs that another one has left to its outcome."""
        ids = [each.stored.job_id for each in follow_ups[: len(wanted)]]
        self.ledger.stored(wanted, ids)
        batch_id = wanted[0].batch
        assert batch_id is not None
        self._joined(batch_id, ids if takes else [])

    def _called_back(self) -> None:
        """Take in the callbacks of batches as well."""
        super()._called_back()
        expected, self.ledger.telling = sorted(self.ledger.telling), []
        rows = Job.objects.using(self.using).filter(task_path=tell_of_batch.module_path)
        new = rows.exclude(pk__in=list(self.ledger.jobs)).order_by("pk")
        found = {
            pk: (_batch_of(metadata), decode_call(text, resolve_models=False)[0][0])
            for pk, text, metadata in new.values_list("pk", "arguments", "metadata")
        }
        assert sorted(found.values()) == expected, f"told of {found}, not {expected}"
        self.ledger.stored(
            [BatchWanted("told", 0, batch=batch, is_callback=True) for batch, _ in found.values()],
            [*found],
        )


def _callbacks(told: Sequence[str]) -> dict[str, Any]:
    return {f"on_{name}": call(tell_of_batch, name) for name in told}


def _parents(node: Node, number: int) -> list[int]:
    """Return which of the earlier nodes a node is after."""
    return list(dict.fromkeys(each % number for each in node.after)) if number else []


def _keys(rows: Any) -> list[int]:
    return list(rows.order_by("pk").values_list("pk", flat=True))


def _batch_of(metadata: str) -> int:
    link = Link.read(metadata)
    assert link is not None
    assert link.is_callback
    return link.batch_id
