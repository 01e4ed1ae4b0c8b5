"""What should become of batches: the rules of membership in plain Python, without a database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from steady_queue_core.dialects import Ending
from steady_queue_core.tasks.metadata import JobMetadata

from .ledger import BLOCKED, CLAIMED, FAILED, FINISHED, READY, SCHEDULED, Entry, Ledger, Wanted

WAITING = "waiting"
#: What becomes of a member, in the order of the numbers that are stored.
PENDING, SUCCEEDED, FAILED_MEMBER, CANCELLED, DISCARDED, SKIPPED = STATES = (
    "pending", "succeeded", "failed", "cancelled", "discarded", "skipped",
)  # fmt: skip
FAILURES = (FAILED_MEMBER, CANCELLED)
#: What needs the success of each of its members.
SEQUENCES = ("chain", "group")
#: Whether a member that was awaited has ended, and as it had to; how it had to. As stored.
OPEN, MET, UNMET, BY_FAILURE = DEPENDENCIES = ("open", "met", "unmet", "by failure")
SUCCESS, FAILURE, ANY = RUN_WHEN = ("success", "failure", "finished")
#: In the list of a job's steps, what stands for a sleep.
NAP = -1


@dataclass
class BatchWanted(Wanted):
    """A job of a batch as somebody enqueues it."""

    batch: int | None = None
    #: Whether it is part of a chain, group or workflow.
    is_awaited: bool = False
    is_callback: bool = False

    @property
    def metadata(self) -> JobMetadata:
        known: JobMetadata = super().metadata
        if self.batch is None:
            return known
        link = (self.batch, False, True) if self.is_callback else (self.batch, self.is_awaited)
        return replace(known, batch=link if any(link[1:]) else link[:1])


@dataclass
class Batch:
    """A batch, and how far it is."""

    batch_id: int
    kind: str = "batch"
    #: The callbacks that it has.
    told: tuple[str, ...] = ()
    #: The member that it is of another one.
    member: int | None = None
    has_started: bool = False
    is_cancelled: bool = False
    finished_at: float | None = None
    total: int | None = None
    failed: int | None = None

    @property
    def takes_more(self) -> bool:
        return self.finished_at is None and not self.is_cancelled


@dataclass
class Member:
    """A job or a batch that belongs to a batch."""

    member_id: int
    batch: int
    job: int | None = None
    state: str = PENDING


@dataclass
class Wait:
    """What a job waits for, or has waited for."""

    parent: int
    run_when: str
    state: str = OPEN


class BatchLedger(Ledger):
    def __init__(self) -> None:
        super().__init__()
        self.batches: dict[int, Batch] = {}
        self.members: dict[int, Member] = {}
        #: By the jobs that wait, or have waited.
        self.waits: dict[int, list[Wait]] = {}
        #: When sleeps are over, by the job and the place among its steps.
        self.naps: dict[tuple[int, int], float] = {}
        #: The callbacks of batches that have ended, which were not seen yet.
        self.telling: list[tuple[int, str]] = []

    # --- looking

    def pending(self, batch_id: int) -> list[Member]:
        return [each for each in self._members(batch_id) if each.state == PENDING]

    def takes_more(self, batch_id: int) -> bool:
        return batch_id in self.batches and self.batches[batch_id].takes_more

    def _members(self, batch_id: int) -> list[Member]:
        return [each for each in self.members.values() if each.batch == batch_id]

    def _of_jobs(self, job_ids: Collection[int]) -> list[Member]:
        return [each for each in self.members.values() if each.job in job_ids]

    def _is_kept(self, entry: Entry) -> bool:
        """Whether a job stays as long as its batch goes on."""
        batches = [self.batches.get(each.batch) for each in self._of_jobs([entry.job_id])]
        return any(batch is not None and batch.finished_at is None for batch in batches)

    # --- what is added

    def made(self, batch: Batch, outer: Member | None) -> None:
        """Take in a batch, which belongs to another one as ``outer``."""
        self.batches[batch.batch_id] = batch
        if outer is not None:
            self.members[outer.member_id] = outer
            batch.member = outer.member_id

    def joined(self, batch_id: int, jobs: Mapping[int, int | None]) -> None:
        """Take in members of a batch, each with its job."""
        for member_id, job_id in jobs.items():
            self.members.setdefault(member_id, Member(member_id, batch_id, job_id))

    def wait(self, job_id: int, wanted: Wanted, waits: list[Wait]) -> None:
        """Take in a job that waits for members; some of these may have ended before."""
        self.jobs[job_id] = Entry(job_id, wanted, state=WAITING, enqueued_at=self.now)
        self.waits[job_id] = waits
        ended = {each.parent: self.members[each.parent].state for each in waits}
        self._resolve({pk: state for pk, state in ended.items() if state != PENDING})
        self._move_on({job_id})

    def start(self, batch_id: int) -> None:
        """Let a batch end from now on."""
        batch = self.batches[batch_id]
        if not batch.has_started:
            batch.has_started = True
            self._after({}, {batch_id})

    # --- what ends

    def settle(
        self,
        ended: Iterable[tuple[int, Ending, float, bool]],
        heirs: Mapping[int, tuple[int, int]] | None = None,
        *,
        keeping: bool = False,
    ) -> None:
        ended = list(ended)
        super().settle(ended, heirs, keeping=keeping)
        states = {Ending.FINISHED: SUCCEEDED, Ending.FAILED: FAILED_MEMBER}
        self._end({job_id: states[how] for job_id, how, *_ in ended if how in states})

    def end_cancelled(self, job_ids: Sequence[int]) -> None:
        """End claims whose jobs were not to start any more."""
        entries = [self.jobs[job_id] for job_id in job_ids]
        kept = [(entry.attempts, entry.snoozes, entry.crashes) for entry in entries]
        super().settle([(each, Ending.FAILED, 0.0, True) for each in job_ids], keeping=True)
        for entry, each in zip(entries, kept, strict=True):
            entry.attempts, entry.snoozes, entry.crashes = each
        self._end(dict.fromkeys(job_ids, CANCELLED))

    def sleep(self, job_id: int, until: float) -> None:
        """End an attempt until a sleep is over."""
        super().settle([(job_id, Ending.RETRIED, until - self.now, True)])
        self.jobs[job_id].attempts -= 1

    def cancel(self, job_ids: Collection[int]) -> int:
        ended = 0
        # One state after the other: a job that moves on meanwhile is found in the next.
        for state in (WAITING, SCHEDULED, BLOCKED, READY):
            some = [each.job_id for each in self.of(state) if each.job_id in job_ids]
            for entry in self.of(WAITING):
                if entry.job_id in some:
                    entry.end(FAILED, self.now)
                    entry.keep(self.now)
                    entry.has_begun = True
            ended += len(some) if state == WAITING else super().cancel(some)
            self._end(dict.fromkeys(some, CANCELLED))
        claimed = [each.job_id for each in self.of(CLAIMED) if each.job_id in job_ids]
        return ended + super().cancel(claimed)

    def discard(self, job_ids: Collection[int]) -> int:
        waiting = [each.job_id for each in self.of(WAITING) if each.job_id in job_ids]
        for job_id in waiting:
            del self.jobs[job_id]
        self._end(dict.fromkeys(waiting, DISCARDED))
        gone = [
            each.job_id for each in self.of(READY, SCHEDULED, BLOCKED, FAILED)
            if each.job_id in job_ids
        ]  # fmt: skip
        discarded = super().discard(gone)
        self._end(dict.fromkeys(gone, DISCARDED))
        return len(waiting) + discarded

    def retry(self, job_ids: Collection[int]) -> int:
        failed = [each.job_id for each in self.of(FAILED) if each.job_id in job_ids]
        retried = super().retry(failed)
        self._reopen(failed)
        return retried

    def clear_finished(self, hours: float) -> int:
        return self._clear(
            entry for entry in self.of(FINISHED)
            if entry.finished_at < self.now - hours and entry.kept_until is None
        )  # fmt: skip

    def clear_kept(self) -> int:
        return self._clear(
            entry for entry in self.of(FINISHED, FAILED)
            if entry.kept_until is not None and entry.kept_until < self.now
        )  # fmt: skip

    def _clear(self, entries: Iterable[Entry]) -> int:
        old = [entry.job_id for entry in entries if not self._is_kept(entry)]
        for job_id in old:
            del self.jobs[job_id]
        return len(old)

    # --- what is done to batches

    def cancel_batch(self, batch_id: int) -> bool:
        known, cancelled = [batch_id], []
        for pk in known:
            batch = self.batches[pk]
            if batch.finished_at is not None:
                continue
            batch.is_cancelled = True
            self.cancel([each.job for each in self.pending(pk) if each.job is not None])
            cancelled.append(pk)
            known += [each.batch_id for each in self._within(pk) if each.finished_at is None]
        for pk in reversed(cancelled):
            self._after({}, {pk})
        return batch_id in cancelled

    def retry_batch(self, batch_id: int) -> int:
        known, failed = [batch_id], list[Member]()
        for pk in known:
            found = [each for each in self._members(pk) if each.state in FAILURES]
            failed += found
            mine = {each.member_id for each in found}
            known += [each.batch_id for each in self._within(pk) if each.member in mine]
        if not failed:
            return 0
        gone = [each for pk in known for each in self._members(pk) if each.state == DISCARDED]
        self._reopen_batches(known)
        own = self.members.get(self.batches[batch_id].member or 0)
        if own is not None and self.batches[own.batch].finished_at is None:
            own.state = PENDING
        for member in failed:
            self._catch_up(member)
        again = [each.job for each in failed if each.job in self.ids(FAILED)]
        parents = {each.member_id for each in [*failed, *gone]}
        for job_id in [each.job for each in failed]:
            for wait in self.waits.get(job_id or 0, []):
                wait.state = OPEN if wait.parent in parents else wait.state
        waiting = [pk for pk in again if any(w.state == OPEN for w in self.waits.get(pk or 0, []))]
        for job_id in waiting:
            self._wait_again(self.jobs[job_id or 0])
        self.retry([pk for pk in again if pk is not None and pk not in waiting])
        over = {each.member_id: each.state for each in [*failed, *gone] if each.state != PENDING}
        self._after(over, set(known))
        return len(again)

    def clear_batches(self, hours: float) -> int:
        old = [
            batch for batch in self.batches.values()
            if batch.finished_at is not None and batch.finished_at < self.now - hours
            and not self._is_awaited(batch) and not self._is_being_told(batch)
        ]  # fmt: skip
        for batch in old:
            for member in self._members(batch.batch_id):
                del self.members[member.member_id]
                self.waits.pop(member.job or 0, None)
            del self.batches[batch.batch_id]
        return len(old)

    def _is_being_told(self, batch: Batch) -> bool:
        """Whether a callback of a batch has not ended."""
        callbacks = [
            entry for entry in self.jobs.values()
            if isinstance(entry.wanted, BatchWanted)
            and entry.wanted.is_callback and entry.wanted.batch == batch.batch_id
        ]  # fmt: skip
        return any(entry.state not in (FINISHED, FAILED) for entry in callbacks)

    def _is_awaited(self, batch: Batch) -> bool:
        """Whether a batch is one of the results of another one that goes on."""
        member = self.members.get(batch.member or 0)
        return member is not None and self.batches[member.batch].finished_at is None

    def _within(self, batch_id: int) -> list[Batch]:
        members = {each.member_id for each in self._members(batch_id)}
        return [self.batches[pk] for pk in sorted(self.batches)
                if self.batches[pk].member in members]  # fmt: skip

    def _reopen_batches(self, batch_ids: Collection[int]) -> None:
        for pk in batch_ids:
            batch = self.batches[pk]
            batch.finished_at, batch.is_cancelled = None, False
            batch.total = batch.failed = None

    def _catch_up(self, member: Member) -> None:
        """Let a member that had failed be what its batch, or its job, is now."""
        if member.job is None:
            if any(each.member == member.member_id for each in self.batches.values()):
                member.state = PENDING
        elif (entry := self.jobs.get(member.job)) is not None and entry.state != FAILED:
            # Somebody has retried it after the end of the batch.
            member.state = SUCCEEDED if entry.state == FINISHED else PENDING

    def _wait_again(self, entry: Entry) -> None:
        entry.attempts, entry.asked, entry.kept_until = 0, False, None
        # One that runs again does so as soon as it may.
        entry.state, entry.wanted = WAITING, replace(entry.wanted, due=None)
        self._reopen([entry.job_id])

    def _reopen(self, job_ids: Collection[int]) -> None:
        for member in self._of_jobs(job_ids):
            if self.batches[member.batch].finished_at is None:
                member.state = PENDING

    # --- what follows

    def _end(self, states: Mapping[int, str]) -> None:
        """End the members whose jobs are the keys, all at once."""
        members = [each for each in self._of_jobs(states) if each.state == PENDING]
        ended = {}
        for member in members:
            state = states[member.job or 0]
            skipped = state == CANCELLED and self._was_skipped(member.job or 0)
            ended[member.member_id] = SKIPPED if skipped else state
        for pk, state in ended.items():
            self.members[pk].state = state
        self._after(ended, {each.batch for each in members})

    def _was_skipped(self, job_id: int) -> bool:
        """Whether a job was not to run, and no failure is the reason."""
        states = {each.state for each in self.waits.get(job_id, [])}
        return UNMET in states and BY_FAILURE not in states

    def _after(self, ended: Mapping[int, str], batch_ids: set[int]) -> None:
        """Do what follows the end of members: batches end, jobs that have waited go on."""
        waiting = self._resolve(ended)
        for batch_id in sorted(batch_ids, reverse=True):
            waiting |= self._end_batch(batch_id)
        self._move_on(waiting)

    def _resolve(self, ended: Mapping[int, str]) -> set[int]:
        waiting = set()
        for job_id, waits in self.waits.items():
            for wait in waits:
                if wait.state == OPEN and wait.parent in ended:
                    state = ended[wait.parent]
                    is_met = {
                        SUCCESS: state == SUCCEEDED, FAILURE: state in FAILURES, ANY: True
                    }  # fmt: skip
                    by_failure = wait.run_when == SUCCESS and state != SKIPPED
                    wait.state = (
                        MET if is_met[wait.run_when] else BY_FAILURE if by_failure else UNMET
                    )
                    waiting.add(job_id)
        return waiting

    def _end_batch(self, batch_id: int) -> set[int]:
        """End a batch if it is complete; return the jobs that have waited for it."""
        batch = self.batches.get(batch_id)
        if batch is None or not batch.has_started or batch.finished_at is not None:
            return set()
        states = [each.state for each in self._members(batch_id)]
        if PENDING in states:
            return set()
        batch.finished_at = self.now
        batch.total, batch.failed = len(states), sum(each in FAILURES for each in states)
        state = self._state_of(batch, states)
        ends = {SUCCEEDED: "success", DISCARDED: "success", SKIPPED: ""}
        chosen = (ends.get(state, "failure"), "finish")
        self.telling += [(batch_id, name) for name in chosen if name in batch.told]
        member = self.members.get(batch.member or 0)
        if member is None or member.state != PENDING:
            return set()
        member.state = state
        waiting = self._resolve({member.member_id: member.state})
        return waiting | self._end_batch(member.batch)

    def _state_of(self, batch: Batch, states: Collection[str]) -> str:
        if batch.is_cancelled:
            return CANCELLED
        if batch.failed:
            return FAILED_MEMBER
        for state in (DISCARDED, SKIPPED):
            if state in states and batch.kind in SEQUENCES:
                return state
        return SUCCEEDED

    def _move_on(self, job_ids: Collection[int]) -> None:
        for entry in self.of(WAITING):
            states = [each.state for each in self.waits[entry.job_id]]
            if entry.job_id not in job_ids or OPEN in states:
                continue
            if not {UNMET, BY_FAILURE}.isdisjoint(states):
                entry.asked = True
                entry.token += 1  # So that no claim takes it for the job that it was.
            wanted = entry.wanted
            entry.state = READY if wanted.due is None and wanted.key is None else SCHEDULED
            entry.due_at = self.now + (wanted.due or 0.0)
