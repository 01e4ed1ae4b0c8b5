"""What should become of jobs: the rules of the queue in plain Python, without a database.

Nothing in here knows how the queue does it. The time is in hours, and moves only when told to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import takewhile

from steady_queue_core.dialects import Ending
from steady_queue_core.features.retention.period import FOREVER, Period
from steady_queue_core.tasks.metadata import JobMetadata

FINISHED = "finished"
READY, SCHEDULED, BLOCKED = "ready", "scheduled", "blocked"
CLAIMED, FAILED = "claimed", "failed"


@dataclass
class Wanted:
    """A job as somebody enqueues it."""

    queue: str
    rank: int
    #: Hours from now; ``None``: at once.
    due: float | None = None
    key: str | None = None
    to: int = 1
    #: In hours.
    duration: float = 1.0
    discards: bool = False
    #: Hours after which it does not start any more.
    expires: float | None = None
    #: For how many hours it is kept after its success, and after its failure; infinity: for ever.
    kept: float | None = None
    kept_failed: float | None = None
    delivery: str | None = None
    #: Whether its success, and its failure, have callbacks.
    told: tuple[bool, bool] = (False, False)

    @property
    def metadata(self) -> JobMetadata:
        return JobMetadata(
            expires=None if self.expires is None else timedelta(hours=self.expires),
            retention=_period(self.kept),
            failure_retention=_period(self.kept_failed),
            delivery=self.delivery,
            max_crashes=None if self.delivery is None else MOST_CRASHES,
        )


def _period(hours: float | None) -> Period | None:
    if hours is None:
        return None
    return FOREVER if hours == math.inf else timedelta(hours=hours)


@dataclass
class Entry:
    """A job, and where it stands."""

    job_id: int
    wanted: Wanted
    state: str = READY
    token: int = 0
    attempts: int = 0
    due_at: float = 0.0
    claimed_at: float = 0.0
    finished_at: float = 0.0
    process: int = 0
    #: Whether it was asked to end while it ran.
    asked: bool = False
    #: How many processes it has taken along.
    crashes: int = 0
    #: How it ends because its process is dead.
    lost: Ending = Ending.RELEASED
    enqueued_at: float = 0.0
    #: Whether it has started, or has ended without: it does not expire then.
    has_begun: bool = False
    snoozes: int = 0
    discarded: str | None = None
    #: Until when it is kept, if it says so itself.
    kept_until: float | None = None
    #: The token of the attempt that has stored something last, and its checkpoint and progress.
    stored_by: int = 0
    data: int | None = None
    done: int | None = None
    #: The token of the attempt that has taken each step, and what it returned, in their order.
    steps: list[tuple[int, int]] = field(default_factory=list)

    @property
    def stored(self) -> tuple[int, int | None, int | None] | None:
        """What the job's attempts have stored, if they have."""
        return (self.stored_by, self.data, self.done) if self.stored_by else None

    def forget_checkpoint(self) -> None:
        """Forget what an attempt to come will not need: the job has succeeded."""
        self.data = None
        if self.done is None:
            self.stored_by = 0

    def has_expired(self, now: float) -> bool:
        """Whether it must not start any more."""
        expires = self.wanted.expires
        return expires is not None and not self.has_begun and now >= self.enqueued_at + expires

    @property
    def metadata(self) -> JobMetadata:
        return replace(self.wanted.metadata, snoozes=self.snoozes, discarded=self.discarded)

    def end(self, state: str, now: float) -> None:
        self.state, self.finished_at = state, now

    def keep(self, now: float) -> None:
        """Take note of how long it is kept, now that it has ended and this is known."""
        kept = self.wanted.kept if self.state == FINISHED else self.wanted.kept_failed
        self.kept_until = None if kept is None else now + kept

    @property
    def turn(self) -> tuple[int, int]:
        return self.wanted.rank, self.job_id


#: How many processes a job may take along that is delivered at least once.
MOST_CRASHES = 2


class Ledger:
    def __init__(self) -> None:
        self.now = 0.0
        self.jobs: dict[int, Entry] = {}
        #: The limit of each key whose semaphore is known.
        self.limits: dict[str, int] = {}
        #: Which jobs hold a permit, by key.
        self.holders: dict[str, set[int]] = {}
        self.paused: set[str] = set()
        #: The jobs that have ended and whose callbacks were not seen yet; whether they succeeded.
        self.calling: list[tuple[int, bool]] = []
        #: When each registered process was last heard of.
        self.heard: dict[int, float] = {}

    # --- looking

    def of(self, *states: str) -> list[Entry]:
        """Return the jobs in some states, in the order of their ids."""
        return [self.jobs[key] for key in sorted(self.jobs) if self.jobs[key].state in states]

    def ids(self, *states: str) -> list[int]:
        return [entry.job_id for entry in self.of(*states)]

    def held(self, key: str) -> set[int]:
        return self.holders.setdefault(key, set())

    def left(self, key: str) -> int:
        return self.limits[key] - len(self.held(key))

    # --- what may happen

    def refused(self, wanted: Sequence[Wanted]) -> list[bool]:
        """Say of jobs that are about to be enqueued together which will not be stored."""
        trial, first = deepcopy(self), max(self.jobs, default=0) + 1
        ids = range(first, first + len(wanted))
        trial.stored(wanted, ids)
        return [trial.jobs[job_id].state == BLOCKED and each.discards
                for job_id, each in zip(ids, wanted, strict=True)]  # fmt: skip

    def stored(self, wanted: Sequence[Wanted], job_ids: Sequence[int | None]) -> None:
        """Take in jobs that were enqueued together; ``None``: it was discarded."""
        limits: dict[str, int] = {}
        for each, job_id in zip(wanted, job_ids, strict=True):
            if each.key is not None and each.due is None:
                limits[each.key] = each.to
            if job_id is None:
                continue
            entry = self.jobs[job_id] = Entry(job_id, each, enqueued_at=self.now)
            if each.due is not None:
                entry.state, entry.due_at = SCHEDULED, self.now + each.due
            elif each.key is not None:
                entry.state = BLOCKED
        self.limits |= limits
        self.admit(limits)

    def admit(self, keys: Iterable[str]) -> int:
        """Let in who waits and finds a permit; return how many."""
        return sum(self._admit(key) for key in set(keys))

    def _admit(self, key: str) -> int:
        waiting = [entry for entry in self.of(BLOCKED) if entry.wanted.key == key]
        waiting.sort(key=lambda entry: entry.turn)
        if waiting and key not in self.limits:
            self.limits[key] = waiting[0].wanted.to
        admitted = waiting[: max(0, self.left(key))] if waiting else []
        for entry in admitted:
            entry.state = READY
            self.held(key).add(entry.job_id)
        return len(admitted)

    def claim(self, process: int, patterns: Sequence[str], limit: int) -> list[int]:
        """Return the ids of the jobs that the process gets, in order."""
        if process not in self.heard:
            return []
        claimed = self._in_turn(patterns)[: max(0, limit)]
        for entry in claimed:
            entry.state, entry.process, entry.claimed_at = CLAIMED, process, self.now
        return [entry.job_id for entry in claimed]

    def _in_turn(self, patterns: Sequence[str]) -> list[Entry]:
        ready = sorted(self.of(READY), key=lambda entry: entry.turn)
        excluded = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
        ready = [e for e in ready if not any(_fits(e.wanted.queue, each) for each in excluded)]
        patterns = [each for each in patterns if not each.startswith("!")] or ["*"]
        if "*" in patterns:
            return [entry for entry in ready if entry.wanted.queue not in self.paused]
        names = sorted({entry.wanted.queue for entry in ready})
        served: list[str] = []
        for pattern in patterns:
            for name in names:
                if _fits(name, pattern) and name not in served and name not in self.paused:
                    served.append(name)
        return [entry for name in served for entry in ready if entry.wanted.queue == name]

    def follow(
        self, process: int, holders: Sequence[int], limit: int, lost: Collection[int]
    ) -> list[tuple[int, int]]:
        """Return the ids of the jobs that the process gets to run after ``holders``, some of whose
        claims are ``lost``, each with the job before it."""
        chains: dict[str, list[Entry]] = {}
        for entry in (self.jobs[job_id] for job_id in holders):
            chain = chains.setdefault(entry.wanted.key or "", [entry])
            if entry is not chain[0] and entry.wanted.queue == chain[0].wanted.queue:
                chain.append(entry)
        return [
            found
            for _, chain in sorted(chains.items())
            if not any(entry.job_id in lost for entry in chain)
            for found in self._follow(process, chain, limit)
        ]

    def is_waited_for(self, job_id: int) -> bool:
        """Whether a job of the same key and queue is next to get the job's permit."""
        entry = self.jobs[job_id]
        waiting = [each for each in self.of(BLOCKED) if each.wanted.key == entry.wanted.key]
        next_one = min(waiting, key=lambda each: each.turn, default=entry)
        return next_one is not entry and next_one.wanted.queue == entry.wanted.queue

    def _follow(self, process: int, chain: list[Entry], limit: int) -> list[tuple[int, int]]:
        key, queue = chain[0].wanted.key or "", chain[0].wanted.queue
        held = all(
            entry.state == CLAIMED and entry.process == process and entry.job_id in self.held(key)
            for entry in chain
        )
        if not held or queue in self.paused or len(self.held(key)) > self.limits[key]:
            return []
        waiting = [entry for entry in self.of(BLOCKED) if entry.wanted.key == key]
        waiting.sort(key=lambda entry: entry.turn)
        first = waiting[: limit * len(chain)]
        found, ends = [], [entry.job_id for entry in chain]
        for entry in takewhile(lambda entry: entry.wanted.queue == queue, first):
            entry.state, entry.process, entry.claimed_at = CLAIMED, process, self.now
            found.append((entry.job_id, ends.pop(0)))
            ends.append(entry.job_id)
        return found

    def holds(self, job_id: int, token: int) -> bool:
        entry = self.jobs.get(job_id)
        return entry is not None and entry.state == CLAIMED and entry.token == token

    def settle(
        self,
        ended: Iterable[tuple[int, Ending, float, bool]],
        heirs: Mapping[int, tuple[int, int]] | None = None,
        *,
        keeping: bool = False,
    ) -> None:
        """End claims that are held: of each job, how, its delay, and whether it is preserved.
        ``heirs``: the job and the token of the claim that the permit of a job passes to.
        ``keeping``: they end as an attempt does, which reads in the metadata what follows."""
        keys, ended = set(), list(ended)
        passing = self._passing(heirs or {}, {job_id for job_id, *_ in ended})
        for job_id, ending, delay, preserve in ended:
            entry = self.jobs[job_id]
            key = entry.wanted.key
            keys.add(key)
            if ending is not Ending.RELEASED:
                entry.attempts += 1
                entry.has_begun = True
                if key is not None and job_id in self.held(key) and job_id in passing:
                    self.held(key).add(passing[job_id])
                self._end_permit(entry)
            entry.process = 0
            if ending in (Ending.FINISHED, Ending.FAILED):
                succeeded = ending is Ending.FINISHED
                is_neither = entry.discarded is not None if succeeded else entry.asked
                if entry.wanted.told[not succeeded] and not is_neither:
                    self.calling.append((job_id, succeeded))
            if ending is Ending.FINISHED and not preserve:
                del self.jobs[job_id]
            elif ending in (Ending.FINISHED, Ending.FAILED):
                entry.end(FINISHED if ending is Ending.FINISHED else FAILED, self.now)
                if ending is Ending.FINISHED:
                    entry.forget_checkpoint()
                if keeping:
                    entry.keep(self.now)
                if keeping and ending is Ending.FAILED:
                    entry.snoozes = entry.crashes = 0
            elif ending is Ending.RETRIED and delay > 0:
                entry.state, entry.due_at = SCHEDULED, self.now + delay
            else:
                entry.state = READY if key is None or job_id in self.held(key) else BLOCKED
        self.admit(key for key in keys if key is not None)

    def snooze(self, job_id: int, delay: float) -> None:
        """Let a task that runs put its job off: that counts no attempt."""
        self.settle([(job_id, Ending.RETRIED, delay, True)])
        entry = self.jobs[job_id]
        entry.attempts -= 1
        entry.snoozes += 1

    def expire(self, job_id: int) -> None:
        """End a claim that came too late for its job to start."""
        self.settle([(job_id, Ending.FAILED, 0.0, True)], keeping=True)
        self.jobs[job_id].attempts -= 1

    def _passing(
        self, heirs: Mapping[int, tuple[int, int]], ended: Collection[int]
    ) -> dict[int, int]:
        """Return the heirs that take a permit over, by the job that gives it up."""
        permitted = set().union(*self.holders.values())
        return {
            job_id: heir
            for job_id, (heir, token) in heirs.items()
            if self.holds(heir, token) and heir not in permitted and heir not in ended
        }

    def _end_permit(self, entry: Entry) -> None:
        if entry.wanted.key is not None:
            self.held(entry.wanted.key).discard(entry.job_id)

    def dispatch(self, limit: int) -> int:
        due = [entry for entry in self.of(SCHEDULED) if entry.due_at <= self.now]
        moved = sorted(due, key=lambda entry: (entry.due_at, *entry.turn))[:limit]
        for entry in moved:
            entry.state = READY if entry.wanted.key is None else BLOCKED
        self.admit(entry.wanted.key for entry in moved if entry.wanted.key is not None)
        for entry in moved:
            if entry.state == BLOCKED and entry.wanted.discards and not entry.token:
                del self.jobs[entry.job_id]
        return len(moved)

    @property
    def next_due(self) -> float | None:
        """Hours until the next scheduled job is due; 0: it is."""
        due = [entry.due_at for entry in self.of(SCHEDULED)]
        return max(0.0, min(due) - self.now) if due else None

    def retry(self, job_ids: Collection[int]) -> int:
        failed = [entry for entry in self.of(FAILED) if entry.job_id in job_ids]
        for entry in failed:
            entry.attempts, entry.asked, entry.kept_until = 0, False, None
            entry.token += 1  # So that no claim takes it for the job that it was.
            entry.state = READY if entry.wanted.key is None else BLOCKED
        self.admit(entry.wanted.key for entry in failed if entry.wanted.key is not None)
        return len(failed)

    def discard(self, job_ids: Collection[int]) -> int:
        gone = [
            entry for entry in self.of(READY, SCHEDULED, BLOCKED, FAILED)
            if entry.job_id in job_ids
        ]  # fmt: skip
        for entry in gone:
            self._end_permit(entry)
            del self.jobs[entry.job_id]
        self.admit(entry.wanted.key for entry in gone if entry.wanted.key is not None)
        return len(gone)

    def cancel(self, job_ids: Collection[int]) -> int:
        """Let those that wait fail; ask those that run."""
        ended = [e for e in self.of(READY, SCHEDULED, BLOCKED) if e.job_id in job_ids]
        for entry in ended:
            self._end_permit(entry)
            entry.end(FAILED, self.now)
            entry.keep(self.now)
            entry.has_begun = True
        self.admit(entry.wanted.key for entry in ended if entry.wanted.key is not None)
        asked = [e for e in self.of(CLAIMED) if e.job_id in job_ids and not e.asked]
        for entry in asked:
            entry.asked = True
        return len(ended) + len(asked)

    def clear_finished(self, hours: float) -> int:
        old = [
            each for each in self.of(FINISHED)
            if each.finished_at < self.now - hours and each.kept_until is None
        ]  # fmt: skip
        for entry in old:
            del self.jobs[entry.job_id]
        return len(old)

    def clear_kept(self) -> int:
        """Delete those whose own time is over."""
        old = [e for e in self.of(FINISHED, FAILED) if (e.kept_until or math.inf) < self.now]
        for entry in old:
            del self.jobs[entry.job_id]
        return len(old)

    def maintain_semaphores(self) -> int:
        """Revoke the permits of who is not heard of, forget the keys of nobody."""
        lapsed = [
            entry for entry in self.of(CLAIMED)
            if entry.wanted.key is not None
            and max(entry.claimed_at, self.heard.get(entry.process, entry.claimed_at))
            + entry.wanted.duration < self.now
            and entry.job_id in self.held(entry.wanted.key)
        ]  # fmt: skip
        for entry in lapsed:
            self._end_permit(entry)
        admitted = self.admit(entry.wanted.key or "" for entry in lapsed)
        self.limits = {key: to for key, to in self.limits.items() if self.held(key)}
        return admitted

    def prune(self, silent_for: float, started: Callable[[int], bool]) -> None:
        """End the claims of processes that are silent, or gone: a job that had started fails, or
        runs again."""
        silent = [pid for pid, heard in self.heard.items() if heard < self.now - silent_for]
        for process in silent:
            mine = [entry for entry in self.of(CLAIMED) if entry.process == process]
            del self.heard[process]
            self._lose(mine, started)
        orphans = [entry for entry in self.of(CLAIMED) if entry.process not in self.heard]
        self._lose(orphans, lambda job_id: True)

    def _lose(self, entries: Collection[Entry], started: Callable[[int], bool]) -> None:
        again = []
        for entry in entries:
            entry.lost = self._loss(entry, started(entry.job_id))
            if entry.lost is Ending.RETRIED:
                again.append(entry)
        self.settle([(each.job_id, each.lost, 0, True) for each in entries], keeping=True)
        for entry in again:
            entry.attempts -= 1  # It was none.

    def _loss(self, entry: Entry, started: bool) -> Ending:
        """Return how a job ends whose process is dead."""
        delivery = entry.wanted.delivery
        if not started:
            return Ending.FAILED if delivery == "at_most_once" else Ending.RELEASED
        if delivery != "at_least_once" or entry.asked:
            return Ending.FAILED
        entry.crashes += 1
        return Ending.FAILED if entry.crashes == MOST_CRASHES else Ending.RETRIED


def _fits(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
