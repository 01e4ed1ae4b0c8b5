"""Intake: what claimed jobs have to pass before they run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...dialects import ClaimedJob, Outcome
from ...errors import UnregisteredTaskError
from ...features.rates.excess import Excess
from ...features.rates.starts import RatedStarts, is_rated
from ...features.unique import starts as unique_starts
from ..base.context import ProcessContext
from ..base.database import DatabaseClock
from ..base.system import lease_clock
from . import outcomes
from .attempt import RunResult
from .executor import Executor
from .followers import follows_in_chain
from .lanes import Lanes
from .refusals import refusal_of
from .settlement import Settlement
from .thread_pool import Work


def new_gate() -> RatedStarts:
    """Return what says of jobs, just before they start, whether they may."""
    return RatedStarts()


class Intake:
    """Takes in claimed jobs, in this order, which is that of the locks that are taken: cancelled,
    refused and unknown ones end; those that would lose their unique keys and start later go back;
    those with rate limits ask for their starts; unique keys that end at the start are freed; and
    others that follow in their chains are claimed. Of more jobs than there is room for, the late
    ones are known only once most were sent away by their rates. Main thread only."""

    def __init__(
        self,
        context: ProcessContext,
        executor: Executor,
        clock: DatabaseClock,
        lanes: Lanes,
        rates: RatedStarts,
        settlement: Settlement,
    ) -> None:
        self._context, self._executor, self._clock = context, executor, clock
        self._lanes, self._rates, self._settlement = lanes, rates, settlement
        self.excess = Excess()

    def give_back(self) -> None:
        """Let jobs elsewhere start in place of those that were permitted to and have not."""
        self._rates.give_back(self._context.database)

    def release(self, withdrawn: Iterable[ClaimedJob]) -> None:
        """Give jobs back that have not started."""
        withdrawn = list(withdrawn)
        self._rates.withdraw(withdrawn)
        for claim in withdrawn:
            self._settlement.add(RunResult(outcomes.released(claim)))

    def start(self, claimed: list[ClaimedJob], limit: int, asked_at: float) -> None:
        """Look up the tasks of claimed jobs and run them, at most ``limit``, and with what is left
        of it those that follow them. ``asked_at``: when they were asked for, by the lease clock."""
        if not claimed:
            return
        self._clock.set(claimed[0].claimed_at)
        self._executor.start_clock.note_claim(claimed[0].claimed_at, asked_at)
        self._executor.audience.look_again()
        work = self._work_of(claimed)
        # Of more than there is room for, those that are late are known once most were sent away.
        is_excessive = len(claimed) > limit
        work = work if is_excessive else self._in_time(work)
        permitted = self._permitted(work, limit)
        if is_excessive:
            permitted = self._in_time(self._within(permitted, limit))
        if work := self._without_keys(permitted):
            self._follow(work, max(0, limit - len(claimed)))
            self._lanes.submit(work)

    def _work_of(self, claimed: list[ClaimedJob]) -> list[Work]:
        work: list[Work] = []
        for claim in claimed:
            if claim.is_cancelled:
                self._settlement.add(self._executor.cancelled(claim))
                continue
            try:
                # Most jobs have no metadata.
                error = refusal_of(claim, claim.claimed_at) if claim.metadata is not None else None
                if error is not None:
                    self._settlement.add(self._executor.refused(claim, error))
                    continue
                work.append((claim, self._executor.task_of(claim)))
            except UnregisteredTaskError as error:
                self._settlement.add(self._executor.unknown(claim, error))
            except Exception as error:
                self._settlement.add(self._executor.broken(claim, error))
        return work

    def _in_time(self, work: list[Work]) -> list[Work]:
        """Give those jobs back that would lose their unique keys now and start later; return the
        others."""
        late = self._lanes.late(work, lambda claim: claim.ends_key_at_start)
        if not late:
            return work
        self.release(late)
        return [each for each in work if each[0] not in late]

    def _permitted(self, work: list[Work], limit: int) -> list[Work]:
        """Ask for the starts of jobs with rate limits, of ``limit`` in all at the most; return the
        work that may start."""
        claims = [claim for claim, _ in work]
        not_yet = self._rates.not_yet(claims, limit, self._context.database)
        permitted = self._without(not_yet, work)
        delays = [outcome.delay for outcome in not_yet.values()]
        self.excess.note(len(claims), delays, is_full=len(permitted) >= limit)
        return permitted

    def _within(self, work: list[Work], limit: int) -> list[Work]:
        """Give back what there is no room for; return the rest. Jobs that were permitted to start
        come first: others would start in vain for them."""
        work = sorted(work, key=lambda each: not is_rated(each[0]))
        self.release([claim for claim, _ in work[limit:]])
        return work[:limit]

    def _without_keys(self, work: list[Work]) -> list[Work]:
        """Free the unique keys that end with the start of a job; return the work that may start."""
        claims = [claim for claim, _ in work]
        not_yet = unique_starts.not_yet(claims, self._context.database)
        self._rates.withdraw(claim for claim in claims if claim.job_id in not_yet)
        return self._without(not_yet, work)

    def _without(self, not_yet: Mapping[int, Outcome], work: list[Work]) -> list[Work]:
        """Return ``work`` without the jobs that do not start now, and have these outcomes."""
        for outcome in not_yet.values():
            self._settlement.add(RunResult(outcome))
        return [each for each in work if each[0].job_id not in not_yet] if not_yet else work

    def _follow(self, work: list[Work], left: int) -> None:
        """Claim jobs that follow those of ``work`` which have a limit."""
        for holders, limit in self._lanes.shares(work, left):
            began = lease_clock()
            claims = self._settlement.claim_followers(holders, limit)
            if not claims:
                continue
            self._context.events.claimed(claims, lease_clock() - began)
            started = {holder.job_id for holder in holders}
            followers = []
            for claim, task in self._work_of(claims):
                # One that has its key until it starts is not to lose it while it follows others.
                follows = follows_in_chain(claim) and not claim.ends_key_at_start
                if claim.follows in started and follows:
                    started.add(claim.job_id)
                    followers.append((claim, task))
                else:  # The job before it has no task, or it has to wait for a permit.
                    self.release([claim])
            self._lanes.follow(followers, began)
