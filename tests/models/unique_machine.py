"""The machine of ``machine.py``, with jobs that have unique keys among the others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.db.models import F
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from steady_queue_core.dialects import KeyTaken
from steady_queue_core.features.unique.key import JobKey
from steady_queue_core.models import Job, UniqueKey
from steady_queue_core.models.operations.idle_keys import KeptKeys, LostKeys
from steady_queue_core.tasks.metadata import JobMetadata

from .ledger import BLOCKED, FAILED, FINISHED, READY, SCHEDULED, Entry, Ledger, Wanted
from .machine import HOUR, QUEUES, QueueMachine, choices, endings
from .tables import Tables


@dataclass
class UniqueWanted(Wanted):
    """A job with a unique key, as somebody enqueues it."""

    unique: str = "k"
    until: str = "finished"
    #: In hours.
    keep: float = 0.0
    on_conflict: str = "existing"

    @property
    def job_key(self) -> JobKey:
        return JobKey(self.unique, self.until, self.keep * HOUR, self.on_conflict)

    @property
    def metadata(self) -> JobMetadata:
        known: JobMetadata = super().metadata
        return replace(known, unique=self.job_key.stored)


def key_of(entry: Entry) -> UniqueWanted | None:
    return entry.wanted if isinstance(entry.wanted, UniqueWanted) else None


class UniqueLedger(Ledger):
    def __init__(self) -> None:
        super().__init__()
        #: The jobs that have given their key up, because they were about to start.
        self.without_key: set[int] = set()

    def owns(self, entry: Entry) -> bool:
        """Whether a job that lives has its key."""
        lives = entry.state not in (FINISHED, FAILED)
        return key_of(entry) is not None and lives and entry.job_id not in self.without_key

    def keeps(self, entry: Entry) -> bool:
        """Whether a job that has succeeded still has its key."""
        wanted = key_of(entry)
        if wanted is None or entry.state != FINISHED or entry.job_id in self.without_key:
            return False
        return wanted.keep > 0 and self.now < entry.finished_at + wanted.keep

    def holder(self, key: str) -> Entry | None:
        """Return the job that has a key."""
        alike = [e for e in self.jobs.values() if (w := key_of(e)) is not None and w.unique == key]
        found = [entry for entry in alike if self.owns(entry) or self.keeps(entry)]
        assert len(found) <= 1, f"{key!r}: {found}"
        return found[0] if found else None

    def retry(self, job_ids: Collection[int]) -> int:
        allowed, keys = [], set()
        for entry in self.of(FAILED):
            wanted = key_of(entry)
            if entry.job_id not in job_ids:
                continue
            if wanted is not None:
                if self.holder(wanted.unique) is not None or wanted.unique in keys:
                    continue
                keys.add(wanted.unique)
                self.without_key.discard(entry.job_id)
            allowed.append(entry.job_id)
        return super().retry(allowed)

    def replace(self, job_ids: Collection[int], wanted: Collection[UniqueWanted]) -> None:
        """Make these jobs what others want; each of them waits for its first start."""
        old, limits = set(), {}
        for job_id, each in zip(job_ids, wanted, strict=True):
            entry = self.jobs[job_id]
            if entry.wanted.key is not None:
                old.add(entry.wanted.key)
                self.held(entry.wanted.key).discard(job_id)
            entry.wanted, entry.enqueued_at = each, self.now
            entry.token += 1  # So that no claim takes it for the job that it was.
            entry.state = READY if each.key is None else BLOCKED
            if each.due is not None:
                entry.state, entry.due_at = SCHEDULED, self.now + each.due
            elif each.key is not None:
                limits[each.key] = each.to
        self.limits |= limits
        self.admit(limits)
        self.admit(old)


unique_jobs = st.lists(
    st.builds(
        UniqueWanted,
        queue=st.sampled_from(QUEUES),
        rank=st.integers(-1, 1),
        due=st.sampled_from([None, None, None, 1.0]),
        key=st.sampled_from(["a", None, None]),
        expires=st.sampled_from([None, None, None, 1.0]),
        unique=st.sampled_from(["k", "k", "l", "K"]),
        until=st.sampled_from(["finished", "finished", "started"]),
        keep=st.sampled_from([0.0, 0.0, 1.0]),
        on_conflict=st.sampled_from(["existing", "replace", "raise"]),
    ),
    min_size=1,
    max_size=4,
)


class UniqueMachine(QueueMachine):
    ledger: UniqueLedger

    @initialize(processes=st.integers(1, 3))
    def begin(self, processes: int) -> None:
        super().begin(processes)
        UniqueKey.objects.using(self.using).all()._raw_delete(self.using)
        self.tables, self.ledger = AgingTables(self.using), UniqueLedger()
        for process_id in self.processes:
            self.ledger.heard[process_id] = self.ledger.now

    @rule(wanted=unique_jobs)
    def enqueue_unique(self, wanted: list[UniqueWanted]) -> None:
        for each in wanted:
            if each.due is not None:
                each.due += self._step
        present = {
            each.unique: entry
            for each in wanted if (entry := self.ledger.holder(each.unique)) is not None
        }  # fmt: skip
        jobs = [self._new_job(each) for each in wanted]
        if self._is_refused(wanted, present):
            try:
                self.dialect.enqueue(self.connection, jobs)
            except KeyTaken:
                return
            raise AssertionError("A call was to be refused.")
        replaced = self._replaced(wanted, present)
        told = self.dialect.enqueue(self.connection, jobs)
        made = self._made(wanted, present)
        assert [not each.is_duplicate for each in told] == [
            n in made.values() for n in range(len(told))
        ]
        for each, new in zip(wanted, told, strict=True):
            owner = present.get(each.unique)
            expected = owner.job_id if owner is not None else told[made[each.unique]].job_id
            assert new.job_id == expected, f"{each.unique!r}: job {new.job_id}, not {expected}"
        self.ledger.replace(replaced.keys(), replaced.values())
        new_ones = sorted(made.values())
        self.ledger.stored([wanted[n] for n in new_ones], [told[n].job_id for n in new_ones])

    @rule(
        wanted=unique_jobs, again=unique_jobs, ended=endings, chosen=choices, starts=st.booleans(),
        what=st.sampled_from(["settle", "cancel", "nothing"]),
    )  # fmt: skip
    def live(
        self, wanted: Any, again: Any, ended: Any, chosen: list[int], starts: bool, what: str
    ) -> None:
        """Let jobs go through what keys are there for, and others come in between."""
        self.enqueue_unique([replace(each, due=None) for each in wanted])
        self.claim(0, ("*",), 6)
        if starts:
            self.start([*range(6)])
        self.enqueue_unique(again)
        if what == "settle":
            self.settle([(number, *rest) for number, (_, *rest) in enumerate(ended)])
        elif what == "cancel":
            self.cancel()
        self.enqueue_unique([replace(each, due=None) for each in again])
        self.retry(chosen or [0])

    def _is_refused(self, wanted: list[UniqueWanted], present: dict[str, Entry]) -> bool:
        seen = set(present)
        for each in wanted:
            if each.unique in seen and each.on_conflict == "raise":
                return True
            seen.add(each.unique)
        return False

    def _made(self, wanted: list[UniqueWanted], present: dict[str, Entry]) -> dict[str, int]:
        """Return which of the calls makes the job of each key that is free."""
        made: dict[str, int] = {}
        for number, each in enumerate(wanted):
            if each.unique in present:
                continue
            if each.on_conflict == "replace" or each.unique not in made:
                made[each.unique] = number
        return made

    def _replaced(
        self, wanted: list[UniqueWanted], present: dict[str, Entry]
    ) -> dict[int, UniqueWanted]:
        """Return what becomes of the jobs that wait for their first start."""
        jobs, replaced = Job.objects.using(self.using), {}
        for each in wanted:
            entry = present.get(each.unique)
            if entry is None or each.on_conflict != "replace":
                continue
            waits = entry.state in (READY, BLOCKED, SCHEDULED)
            if waits and jobs.filter(pk=entry.job_id, started_at=None).exists():
                replaced[entry.job_id] = each
        return replaced

    @rule(chosen=choices)
    def start(self, chosen: list[int]) -> None:
        """Let claimed jobs begin, of which some have lost their claim."""
        claims = {(claim := self.claims[n % len(self.claims)]).job_id: claim
                  for n in chosen if self.claims}  # fmt: skip
        assert self.dialect.free_started_keys(self.connection, [*claims.values()]) == set()
        for job_id, claim in claims.items():
            entry = self.ledger.jobs.get(job_id)
            if entry is None or not self.ledger.holds(job_id, claim.token):
                continue
            wanted = key_of(entry)
            if wanted is not None and wanted.until == "started" and self.ledger.owns(entry):
                self.ledger.without_key.add(job_id)
                entry.has_begun = True

    @rule()
    def clear_keys(self) -> None:
        present = self.dialect.current_time(self.connection)
        for sweep in (KeptKeys(self.using, present), LostKeys(self.using)):
            while not sweep.exhausted:
                sweep.clear(2)
        left = UniqueKey.objects.using(self.using).values_list("pk", "job_id")
        for key, job_id in left:
            entry = self.ledger.jobs[job_id]
            assert self.ledger.owns(entry) or self.ledger.keeps(entry), (key, entry)

    @invariant()
    def at_most_one_live_job_has_a_key(self) -> None:
        rows = self.tables.read(UniqueKey, "pk", "job_id", "expires_at")
        found = {key: (job_id, expires_at is not None) for key, job_id, expires_at in rows}
        for key in {w.unique for e in self.ledger.jobs.values() if (w := key_of(e)) is not None}:
            holder = self.ledger.holder(key)  # Which raises if there are two.
            if holder is not None:
                expected = holder.job_id, self.ledger.keeps(holder)
                assert found.get(key) == expected, f"{key!r}: {found.get(key)}, not {expected}"
        for key, (job_id, is_kept) in found.items():
            # A job that is kept for less long than its key may have been cleared.
            if not is_kept and job_id in self.ledger.jobs:
                assert self.ledger.owns(self.ledger.jobs[job_id]), (key, job_id)
            assert is_kept or job_id in self.ledger.jobs, (key, job_id)


class AgingTables(Tables):
    def clear(self) -> None:
        super().clear()
        UniqueKey.objects.using(self.using).all()._raw_delete(self.using)

    def age(self, by: timedelta) -> None:
        super().age(by)
        self.rows(UniqueKey).update(expires_at=F("expires_at") - by)
