"""The queue of one database, driven at random, and compared with a ledger after each step."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import connections, transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from steady_queue_core import task
from steady_queue_core.arguments import decode_call
from steady_queue_core.configured_backends import own_backend
from steady_queue_core.conformance.base import ending, new_job
from steady_queue_core.dialects import (
    ClaimedJob,
    Ending,
    Limit,
    NewJob,
    Outcome,
    ProcessIdentity,
    QueueSelector,
    Sequel,
)
from steady_queue_core.dialects.registry import dialect_for
from steady_queue_core.endings import Discard, Fail, Retry, Snooze
from steady_queue_core.errors import Preempted
from steady_queue_core.features.callbacks.options import Callback
from steady_queue_core.models import Job, Queue, process
from steady_queue_core.models.operations.clear import RetainedJobs
from steady_queue_core.models.operations.semaphore_maintenance import SemaphoreMaintenance
from steady_queue_core.models.process import Beat
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.base.journal_reader import JournalSnapshot
from steady_queue_core.processes.supervisor.pruning import Pruner
from steady_queue_core.processes.supervisor.recovery import Rescuer
from steady_queue_core.processes.worker.attempt import Attempt, RunResult
from steady_queue_core.processes.worker.callbacks import with_callback
from steady_queue_core.processes.worker.refusals import refusal_of
from steady_queue_core.processes.worker.task_transaction import TaskTransaction
from steady_queue_core.tasks.results import task_of

from .ledger import BLOCKED, CLAIMED, FAILED, READY, SCHEDULED, Entry, Ledger, Wanted
from .tables import Tables

HOUR = timedelta(hours=1)
#: After how long without a heartbeat a process is dead, in hours.
SILENT = 0.5
#: What tells instants apart that the same delay leads to, in hours: longer than a run takes.
STEP = 0.003


@task(queue_name="mailing", priority=1)
def tell(*args: str) -> None:
    """Do nothing."""


#: What the success of a job entails for its checkpoint and, if it is not kept, its steps.
ENDS = Sequel(ends_checkpoint=True, ends_steps=True, is_implied=True)
#: A callback as jobs keep it.
CALLBACK = tuple(Callback.of(tell))

QUEUES = ("etl", "mail", "mailing", "Mail")
KEYS = ("a", "a", "A")
SELECTORS = (
    ("*",),
    ("*",),
    ("mail",),
    ("mailing", "etl"),
    ("m*",),
    ("Mail", "m*", "etl"),
    ("m*", "*"),
    ("*", "!mail*"),
    ("!Mail", "!etl"),
    ("m*", "etl", "!mailing"),
)

wanted_jobs = st.lists(
    st.builds(
        Wanted,
        queue=st.sampled_from(QUEUES),
        rank=st.integers(-1, 1),
        due=st.sampled_from([None, None, None, -1.0, 1.0, 2.0]),
        key=st.sampled_from([*KEYS, None]),
        to=st.sampled_from([1, 1, 2, 3]),
        duration=st.sampled_from([0.9, 2.9]),
        discards=st.sampled_from([False, False, True]),
        delivery=st.sampled_from([None, None, "at_most_once", "at_least_once"]),
        expires=st.sampled_from([None, None, None, 1.0]),
        kept=st.sampled_from([None, None, 0.0, 1.0, math.inf]),
        kept_failed=st.sampled_from([None, None, 1.0, math.inf]),
        told=st.sampled_from([(False, False), (False, False), (True, False), (True, True)]),
    ),
    min_size=1,
    max_size=5,
)
#: Numbers that choose among what is there.
choice = st.integers(0, 40)
choices = st.lists(choice, max_size=6, unique=True)
endings = st.lists(
    st.tuples(
        choice,
        st.sampled_from(Ending),
        st.sampled_from([0.0, 0.0, 1.0, 2.0]),
        st.booleans(),
        st.none() | choice,
    ),
    min_size=1,
    max_size=5,
)
selectors = st.sampled_from(SELECTORS)
limits = st.integers(1, 6)


#: A claim to end, how, its delay, whether the job is preserved, and who takes over its permit.
Ended = tuple[int, Ending, float, bool, int | None]


class QueueMachine(RuleBasedStateMachine):
    #: Alias of the database.
    using = "default"
    #: Whether this is the replay of a seed, in which less is looked at after each step.
    is_replayed = False

    @initialize(processes=st.integers(1, 3))
    def begin(self, processes: int) -> None:
        self.connection, self.dialect = connections[self.using], dialect_for(self.using)
        self.tables, self.ledger = Tables(self.using), Ledger()
        self.tables.clear()
        self.claims: list[ClaimedJob] = []
        self.processes: list[int] = []
        self.identities: dict[int, ProcessIdentity] = {}
        self.steps = self.last_id = 0
        for _ in range(processes):
            self.register()

    @invariant()
    def the_tables_say_what_they_should(self) -> None:
        self.tables.check(self.ledger)

    # --- jobs

    @rule(wanted=wanted_jobs)
    def enqueue(self, wanted: list[Wanted]) -> None:
        for each in wanted:
            if each.due is not None and each.due > 0:
                each.due += self._step
        refused = self.ledger.refused([_due(each) for each in wanted])
        told = self.dialect.enqueue(self.connection, [self._new_job(each) for each in wanted])
        ids = [new.job_id for new in told]
        assert [job_id is None for job_id in ids] == refused, f"discarded: {ids}, not {refused}"
        stored = [job_id for job_id in ids if job_id is not None]
        assert stored == sorted(set(stored)), f"ids do not grow: {ids}"
        self.ledger.stored([_due(each) for each in wanted], ids)

    @rule(process=choice, patterns=selectors, limit=limits)
    def claim(self, process: int, patterns: tuple[str, ...], limit: int) -> None:
        process_id, selector = self._process(process), QueueSelector.of(patterns)
        identity = self.identities[process_id]
        claims = self.dialect.claim(self.connection, identity, selector, limit)
        self._claimed(claims, process_id, patterns, limit)

    @rule(ended=endings)
    def settle(self, ended: list[Ended]) -> None:
        outcomes, held, heirs = self._outcomes(ended)
        assert self.dialect.settle(self.connection, outcomes) == {job_id for job_id, *_ in held}
        self.ledger.settle(held, heirs)
        self._called_back()

    @rule(ended=endings, process=choice, patterns=selectors, limit=limits)
    def settle_and_claim(
        self,
        ended: list[Ended],
        process: int,
        patterns: tuple[str, ...],
        limit: int,
    ) -> None:
        outcomes, held, heirs = self._outcomes(ended)
        process_id, selector = self._process(process), QueueSelector.of(patterns)
        told, claims = self.dialect.settle_and_claim(
            self.connection, outcomes, self.identities[process_id], selector, limit
        )
        assert told == {job_id for job_id, *_ in held}
        self.ledger.settle(held, heirs)
        self._called_back()
        self._claimed(claims, process_id, patterns, limit)

    @rule(wanted=wanted_jobs, number=choice, preserve=st.booleans(), raises=st.booleans())
    def deliver(self, wanted: list[Wanted], number: int, preserve: bool, raises: bool) -> None:
        """Run a job in one transaction with its outcome; it enqueues others. If it ``raises``, or
        its claim is lost, nothing has happened."""
        if not self.claims:
            return
        claim = self.claims[-1 - number % len(self.claims)]
        ledger = deepcopy(self.ledger)
        outcome = ending(
            Ending.FINISHED, claim, attempts=claim.attempts + 1, return_value="1",
            preserve=preserve, sequel=ENDS,
        )  # fmt: skip

        def work() -> RunResult:
            self.enqueue(wanted)
            if raises:
                raise LookupError
            return with_callback(RunResult(outcome), claim)

        held = self.ledger.holds(claim.job_id, claim.token)
        try:
            done = TaskTransaction(self.using).run(work, lambda: None)
        except LookupError:
            self.ledger = ledger
            return
        assert done.settled is held
        if held:
            self.ledger.settle([(claim.job_id, Ending.FINISHED, 0.0, preserve)])
            self._called_back()
        else:
            self.ledger = ledger

    @rule(number=choice, which=st.sampled_from(["return", "snooze", "discard", "retry", "fail"]))
    def end_as_the_task_chooses(self, number: int, which: str) -> None:
        """Let an attempt end, of which some have lost their claim."""
        live = [each for each in self.claims if self.ledger.holds(each.job_id, each.token)]
        running = {each.job_id for each in live}
        elsewhere = [each for each in self.claims if each.job_id in running and each not in live]
        known = live * 4 + elsewhere * 2 + self.claims
        if not known:
            return
        claim, delay = known[number % len(known)], 1 + self._step
        chosen = {
            "snooze": Snooze(delay * HOUR), "discard": Discard("enough"), "retry": Retry(0),
            "fail": Fail("no"),
        }  # fmt: skip
        attempt = self._attempt(claim)
        self._store(claim, attempt, number, is_live=claim in live)
        self._take_steps(claim, attempt, number, is_live=claim in live)
        if which == "return":
            done = attempt.succeeded(1, lambda: claim.claimed_at)
        else:
            done = attempt.raised(chosen[which], lambda: claim.claimed_at)
        told = self.dialect.settle(self.connection, [self._with_callback(claim, done)])
        assert told == ({claim.job_id} if claim in live else set())
        if claim in live:
            self._ended_by_itself(claim.job_id, which, delay)
            self._called_back()

    def _store(self, claim: ClaimedJob, attempt: Attempt, number: int, *, is_live: bool) -> None:
        """Let a task look at its checkpoint, and store another one and its progress, or one of
        these; who has lost the claim stores nothing."""
        notes, entry = attempt.notes, self.ledger.jobs.get(claim.job_id, Entry(0, Wanted("", 0)))
        if is_live:
            assert notes.checkpointed == entry.data
        # Of the progress, the last one is stored with the outcome.
        told: list[Callable[[], None]] = [
            lambda: notes.checkpoint(number), lambda: notes.progress(number, None, ""),
            lambda: notes.progress(number + 1, None, ""),
        ]  # fmt: skip
        for store in (told[:0], told[:1], told, told[1:])[number % 4]:
            try:
                store()
            except Preempted:
                assert not is_live
            else:
                assert is_live
        if is_live and number % 4:
            entry.stored_by = claim.token
            entry.data = number if number % 4 < 3 else entry.data
            entry.done = number + 1 if number % 4 > 1 else entry.done

    def _take_steps(
        self, claim: ClaimedJob, attempt: Attempt, number: int, *, is_live: bool
    ) -> None:
        """Let a task take the steps that are stored, and perhaps another one; who has lost its
        claim takes no other one."""
        steps, entry = attempt.notes.steps, self.ledger.jobs.get(claim.job_id)
        known = [] if entry is None else entry.steps
        for position in range(len(known) + number % 3 % 2):
            try:
                value = steps.step(f"step {position}", int, (number,), {})
            except Preempted:
                assert not is_live
                return
            if position == len(known):
                assert is_live
                known.append((claim.token, number))
            assert value == known[position][1]

    def _ended_by_itself(self, job_id: int, which: str, delay: float) -> None:
        entry = self.ledger.jobs[job_id]
        if which == "snooze" and entry.wanted.delivery != "at_most_once":
            self.ledger.snooze(job_id, delay)
            return
        # It was the last attempt.
        how = Ending.FAILED if which in ("snooze", "retry", "fail") else Ending.FINISHED
        if which == "discard":
            entry.discarded = "enough"
        self.ledger.settle([(job_id, how, 0.0, entry.wanted.kept != 0)], keeping=True)

    def _attempt(self, claim: ClaimedJob) -> Attempt:
        task = task_of(claim.task_path, claim.backend_name, claim.queue_name, claim.rank)
        backend = own_backend(claim.backend_name)
        return Attempt(claim, task, backend, "worker-0", claim.claimed_at)

    @rule(chosen=choices, limit=limits)
    def follow(self, chosen: list[int], limit: int) -> None:
        """Claim what follows some jobs: mostly those that somebody waits for."""
        limited = [each for each in self.claims if each.concurrency_key is not None]
        live = [each for each in limited if self.ledger.holds(each.job_id, each.token)]
        waited_for = [each for each in live if self.ledger.is_waited_for(each.job_id)]
        known = waited_for * 8 + live + limited
        picked = {(claim := known[number % len(known)]).job_id: claim for number in chosen if known}
        holders = [each for each in picked.values() if each.job_id in self.ledger.jobs]
        if not holders:
            return
        process_id = self.ledger.jobs[holders[0].job_id].process or self.processes[0]
        claims = self.dialect.claim_followers(
            self.connection, self.identities[process_id], holders, limit
        )
        lost = {each.job_id for each in holders if not self.ledger.holds(each.job_id, each.token)}
        expected = self.ledger.follow(process_id, [each.job_id for each in holders], limit, lost)
        assert [(claim.job_id, claim.follows) for claim in claims] == expected
        self._take(claims)

    @rule(wanted=wanted_jobs, process=choice, limit=limits, ended=endings)
    def run_chains(
        self, wanted: list[Wanted], process: int, limit: int, ended: list[Ended]
    ) -> None:
        """Enqueue jobs that wait for each other, claim them one after the other, and end some."""
        self.enqueue([
            replace(each, key=each.key or "a", queue="etl", due=None, discards=False)
            for each in wanted * 2
        ])  # fmt: skip
        self.claim(process, ("*",), 6)
        self.follow([*range(6)], limit)
        self.settle(ended)

    @rule(limit=limits)
    def dispatch(self, limit: int) -> None:
        told = self.dialect.dispatch(self.connection, limit)
        assert told.moved == self.ledger.dispatch(limit)
        expected = self.ledger.next_due
        if expected is None or told.next_due_in is None:
            assert told.next_due_in is expected
        else:
            # The database's clock has gone on since the ledger's was last moved.
            assert -60 < told.next_due_in - expected * 3600 < 1

    @rule(chosen=choices)
    def retry(self, chosen: list[int]) -> None:
        failed = _pick(self.ledger.ids(FAILED), chosen)
        jobs = Job.objects.using(self.using).filter(pk__in=[*failed, *self._any(chosen)])
        assert jobs.retry_failed() == self.ledger.retry({*failed, *self._any(chosen)})

    def cancel(self) -> None:
        found = self.ledger.ids(READY, BLOCKED, SCHEDULED, CLAIMED, FAILED)[self.steps % 3 :: 3]
        jobs = Job.objects.using(self.using).filter(pk__in=found)
        assert jobs.cancel() == self.ledger.cancel(found)

    @rule(chosen=choices)
    def discard(self, chosen: list[int]) -> None:
        waiting = _pick(self.ledger.ids(READY, BLOCKED, SCHEDULED, FAILED), chosen)
        jobs = Job.objects.using(self.using).filter(pk__in=[*waiting, *self._any(chosen)])
        assert jobs.discard() == self.ledger.discard({*waiting, *self._any(chosen)})

    def clear_finished(self) -> None:
        hours = 0.5
        before = self.dialect.current_time(self.connection) - hours * HOUR
        jobs = Job.objects.using(self.using)
        cleared = jobs.clear_finished_in_batches(batch_size=2, finished_before=before)
        assert cleared == self.ledger.clear_finished(hours)

    def clear_kept(self) -> None:
        jobs = Job.objects.using(self.using)
        sweep, cleared = RetainedJobs(jobs, self.dialect.current_time(self.connection)), 0
        while not sweep.exhausted:
            cleared += sweep.clear(2)
        assert cleared == self.ledger.clear_kept()

    # --- queues

    @rule(name=st.sampled_from(QUEUES[:2]))
    def pause_or_resume(self, name: str) -> None:
        queue, paused = Queue(name, self.using), self.ledger.paused
        if name in paused:
            assert (queue.pause(), queue.resume(), queue.resume()) == (False, True, False)
        else:
            assert (queue.resume(), queue.pause(), queue.pause()) == (False, True, False)
        paused ^= {name}

    def clear_queue(self) -> None:
        name = QUEUES[self.steps % len(QUEUES)]
        ready = [each.job_id for each in self.ledger.of(READY) if each.wanted.queue == name]
        assert Queue(name, self.using).clear() == self.ledger.discard(ready)

    # --- processes and time

    @rule(which=st.sampled_from(
        ["register", "deregister", "clear_queue", "clear_finished", "clear_kept", "cancel"]
    ))  # fmt: skip
    def do_what_is_rare(self, which: str) -> None:
        getattr(self, which)()

    def register(self) -> None:
        identity = process.register(
            self.using, kind="worker", name=f"worker-{len(self.processes)}", pid=1,
            hostname="elsewhere", supervisor_id=None, metadata="{}",
        )  # fmt: skip
        self.processes.append(identity.id)
        self.identities[identity.id] = identity
        self.ledger.heard[identity.id] = self.ledger.now

    @rule(number=choice)
    def beat(self, number: int) -> None:
        process_id = self._process(number)
        beat = process.beat(self.using, self.identities[process_id])
        assert (beat is Beat.RECORDED) is (process_id in self.ledger.heard)
        if process_id in self.ledger.heard:
            self.ledger.heard[process_id] = self.ledger.now

    def deregister(self) -> None:
        process_id = self._process(self.steps)
        process.deregister(self.using, f"worker-{self.processes.index(process_id)}")
        self.ledger.heard.pop(process_id, None)

    @rule(odd=st.sampled_from([None, True, False]))
    def prune(self, odd: bool | None) -> None:
        """Of the dead, every other job had started, an ``odd`` one or the next; ``None``: nobody
        knows."""
        database = QueueDatabase(self.using)
        recovery = Rescuer(database)
        pruning = Pruner(database, recovery, SILENT * HOUR)
        known = sorted(self.ledger.jobs)

        def started(job_id: int) -> bool:
            return odd is None or bool(known.index(job_id) % 2) is odd

        running = frozenset(filter(started, self.ledger.ids(CLAIMED)))
        pruning.prune(
            pruning.expired(), lambda _: None if odd is None else JournalSnapshot(running)
        )
        recovery.rescue_orphans()
        self.ledger.prune(SILENT, started)
        self._called_back()

    @rule(hours=st.sampled_from([0.75, 1.5, 4.5]))
    def let_time_pass(self, hours: float) -> None:
        self.tables.age(hours * HOUR)
        self.ledger.now += hours

    @rule(hours=st.sampled_from([0.0, 1.5]))
    def maintain_semaphores(self, hours: float) -> None:
        self.let_time_pass(hours)
        assert SemaphoreMaintenance(self.using).do() == self.ledger.maintain_semaphores()

    # --- transactions of a caller

    @rule(
        wanted=wanted_jobs, ended=endings, process=choice, patterns=selectors, limit=limits,
        chosen=choices, order=st.permutations(range(6)), commits=st.booleans(),
    )  # fmt: skip
    def all_at_once(
        self, wanted: Any, ended: Any, process: int, patterns: tuple[str, ...], limit: int,
        chosen: list[int], order: list[int], commits: bool,
    ) -> None:  # fmt: skip
        """Do several things in one transaction; unless it ``commits``, nothing has happened."""
        things: list[Callable[[], None]] = [
            lambda: self.enqueue(wanted),
            lambda: self.claim(process, patterns, limit),
            lambda: self.settle(ended),
            lambda: self.dispatch(limit),
            lambda: self.retry(chosen),
            lambda: self.discard(chosen),
        ]
        ledger, claims, processes = deepcopy(self.ledger), list(self.claims), list(self.processes)
        with transaction.atomic(using=self.using):
            for number in order[:3]:
                things[number]()
            transaction.set_rollback(not commits, using=self.using)
        if not commits:
            self.ledger, self.claims, self.processes = ledger, claims, processes

    # --- what the steps share

    @property
    def _step(self) -> float:
        self.steps += 1
        return self.steps * STEP

    def _new_job(self, wanted: Wanted) -> NewJob:
        limit = None
        if wanted.key is not None:
            limit = Limit(
                key=wanted.key, to=wanted.to, duration=wanted.duration * HOUR,
                discards=wanted.discards,
            )  # fmt: skip
        when: dict[str, Any] = {}
        if wanted.due is not None and round(wanted.due) % 2:
            present = self.dialect.current_time(self.connection)
            when["run_at"] = present + wanted.due * HOUR
        elif wanted.due is not None:
            when["delay"] = wanted.due * HOUR
        succeeds, fails = (CALLBACK if told else None for told in wanted.told)
        metadata = replace(wanted.metadata, on_success=succeeds, on_failure=fails)
        when["metadata"] = metadata.text()
        return new_job(wanted.queue, rank=wanted.rank, limit=limit, **when)

    def _with_callback(self, claim: ClaimedJob, done: RunResult) -> Outcome:
        """Return an outcome with what follows from it, as the worker finds out: a job that was
        asked to end, and fails, was cancelled."""
        if self.ledger.holds(claim.job_id, claim.token) and self.ledger.jobs[claim.job_id].asked:
            claim = claim._replace(max_attempts=-1)
        return with_callback(done, claim).outcome

    def _called_back(self) -> None:
        """Take in the callbacks of the jobs that have just ended: one for each of them."""
        expected, self.ledger.calling = self.ledger.calling, []
        rows = Job.objects.using(self.using).filter(task_path=CALLBACK[0], queue_name=CALLBACK[1])
        new = rows.exclude(pk__in=list(self.ledger.jobs)).order_by("pk")
        found = {
            pk: decode_call(text, resolve_models=False)[0]
            for pk, text in new.values_list("pk", "arguments")
        }
        told = sorted((int(args[0]), len(args) == 1) for args in found.values())
        assert told == sorted(expected), f"callbacks: {told}, not {sorted(expected)}"
        self.ledger.stored([Wanted(CALLBACK[1], -CALLBACK[2]) for _ in found], [*found])

    def _process(self, number: int) -> int:
        """Return a process that claims, mostly one that is registered."""
        if not self.ledger.heard:
            self.register()
        known = [*self.ledger.heard] * 4 + self.processes
        return known[number % len(known)]

    def _any(self, chosen: list[int]) -> list[int]:
        """Return ids of jobs in any state: what does not apply to them must leave them alone."""
        return _pick(sorted(self.ledger.jobs), chosen)[:1]

    def _claimed(
        self, claims: list[ClaimedJob], process_id: int, patterns: tuple[str, ...], limit: int
    ) -> None:
        expected = self.ledger.claim(process_id, patterns, limit)
        assert [claim.job_id for claim in claims] == expected
        self._take(claims)

    def _take(self, claims: list[ClaimedJob]) -> None:
        for claim in claims:
            entry = self.ledger.jobs[claim.job_id]
            assert claim.token > entry.token
            entry.token = claim.token
            assert claim.attempts == entry.attempts
            assert (claim.queue_name, claim.rank) == (entry.wanted.queue, entry.wanted.rank)
            assert claim.concurrency_key == entry.wanted.key
            assert claim.is_cancelled == entry.asked
        self.claims += claims
        self._end_expired(claims)

    def _end_expired(self, claims: list[ClaimedJob]) -> None:
        """Do as a worker does: what has expired ends instead of starting."""
        errors = [(claim, refusal_of(claim, claim.claimed_at)) for claim in claims]
        expired = [(claim, error) for claim, error in errors if error is not None]
        ids = [claim.job_id for claim, _ in expired]
        jobs, now = self.ledger.jobs, self.ledger.now
        assert ids == [c.job_id for c in claims if jobs[c.job_id].has_expired(now)]
        outcomes = [
            self._with_callback(each, self._attempt(each).never_started(error, each.claimed_at))
            for each, error in expired
        ]
        assert self.dialect.settle(self.connection, outcomes) == set(ids)
        for job_id in ids:
            self.ledger.expire(job_id)
        self._called_back()

    def _outcomes(self, ended: list[Ended]) -> tuple[Any, Any, Any]:
        """Return outcomes of claims, some of which are lost, what those held end with, and the
        heirs of their permits."""
        outcomes, held, heirs = {}, {}, {}
        live = [each for each in self.claims if self.ledger.holds(each.job_id, each.token)]
        known = live * 4 + self.claims
        for number, how, delay, preserve, heir in ended:
            if not known:
                break
            claim = known[number % len(known)]
            if claim.job_id in outcomes:
                continue
            delay = delay and delay + self._step
            outcomes[claim.job_id] = ending(
                how, claim, attempts=claim.attempts + 1, delay=delay * 3600, preserve=preserve,
                exception_class="builtins.ValueError", message="no", started_at=claim.claimed_at,
                sequel=ENDS if how is Ending.FINISHED else None,
            )  # fmt: skip
            outcomes[claim.job_id] = self._with_callback(claim, RunResult(outcomes[claim.job_id]))
            if self.ledger.holds(claim.job_id, claim.token):
                held[claim.job_id] = (claim.job_id, how, delay, preserve)
                alike = [each for each in known if each.concurrency_key == claim.concurrency_key]
                named = alike[heir % len(alike)][:2] if heir is not None else None
                if named is not None and named not in heirs.values():
                    heirs[claim.job_id] = named
                    outcomes[claim.job_id] = outcomes[claim.job_id]._replace(heir=named)
        return list(outcomes.values()), list(held.values()), heirs


def _due(wanted: Wanted) -> Wanted:
    """Return a job as the ledger knows it: what is due is wanted at once."""
    return replace(wanted, due=None) if wanted.due is not None and wanted.due <= 0 else wanted


def _pick(ids: list[int], chosen: list[int]) -> list[int]:
    return sorted({ids[number % len(ids)] for number in chosen}) if ids else []
